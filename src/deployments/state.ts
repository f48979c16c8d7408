/** The status of a deployment on one node, derived from facts about its pool and roll-outs. */
import type { Pool } from "../pool/pool.ts";

/** What a deployment does that finds no room in the budget of a node. */
export const WAITING_FOR_ROOM = "waiting for room on a node";

/** `waiting`: it serves, but its workers have to join, and none has joined this node. */
export type ServingState = "starting" | "ready" | "degraded" | "failed" | "stopped" | "waiting";

export interface DeploymentStatus {
  readonly state: ServingState;
  /** An explanation for people; empty when all is well. */
  readonly reason: string;
  /** The serving revision; undefined before the first. */
  readonly revision: number | undefined;
  /** The number of workers that take calls. */
  readonly ready: number;
  /** The desired number of workers. */
  readonly wanted: number;
  /** Why a worker that is wanted waits for room on the node; undefined when none does. */
  readonly waiting: string | undefined;
  /** The revision that could not start; the previous one continues to serve. */
  readonly failed: FailedRevision | undefined;
  /** The last lines that workers wrote, when something is wrong. */
  readonly lines: readonly string[];
}

export interface FailedRevision {
  readonly revision: number | undefined;
  readonly reason: string;
}

export interface StateFacts extends Omit<DeploymentStatus, "state" | "reason"> {
  /** True when a revision serves. */
  readonly loaded: boolean;
  readonly draining: boolean;
  /** With fewer ready workers than this, the deployment is degraded. */
  readonly enough: number;
  readonly crashLoop: string | undefined;
  readonly lastFault: string | undefined;
  /** What it waits for whose workers this node does not start; undefined: it starts them. */
  readonly awaits: string | undefined;
  /** Why it does not run at a worker that has joined; undefined: it does, or none has. */
  readonly joinedFault: string | undefined;
}

/** Its roll-outs, as far as the status shows them. */
interface ServedRevisions extends Pick<DeploymentStatus, "failed" | "lines"> {
  readonly revision: { readonly number: number | undefined } | undefined;
}

/** The facts of a deployment. `min`: its least number of workers; undefined: it is fixed. */
export function factsOf(
  pool: Pool,
  { revision, failed, lines }: ServedRevisions,
  { draining, min }: { readonly draining: boolean; readonly min: number | undefined },
): StateFacts {
  const { size, readyCount, crashLoop, lastFault, waiting, awaits } = pool;
  return {
    loaded: revision !== undefined,
    draining,
    revision: revision?.number,
    ready: readyCount,
    wanted: size,
    enough: Math.min(size, min ?? size),
    joinedFault: pool.joined.fault,
    ...{ crashLoop, lastFault, waiting, awaits, failed, lines },
  };
}

/** The status that follows from these facts. */
export function statusOf(facts: StateFacts): DeploymentStatus {
  const { revision, ready, wanted, waiting, failed, lines } = facts;
  const [state, reason] = stateOf(facts);
  const told = ["ready", "starting", "waiting"].includes(state) ? [] : lines;
  return { state, reason, revision, ready, wanted, waiting, failed, lines: told };
}

function stateOf(facts: StateFacts): [ServingState, string] {
  const { draining, loaded, failed, revision, ready, enough, crashLoop, lastFault } = facts;
  const waiting = facts.waiting && `${WAITING_FOR_ROOM}: ${facts.waiting}`;
  if (draining) {
    return ["stopped", ""];
  }
  if (failed) {
    const goesOn = loaded ? `; revision ${revision ?? "before"} goes on serving` : "";
    return [
      "failed",
      `revision ${failed.revision ?? "new"} could not start: ${failed.reason}${goesOn}`,
    ];
  }
  if (!loaded) {
    return ["starting", waiting ?? ""];
  }
  if (facts.awaits !== undefined) {
    const { awaits, joinedFault: fault } = facts;
    const why = fault === undefined ? "" : `; the one that has joined cannot start it: ${fault}`;
    return ready > 0 ? ["ready", ""] : ["waiting", `waits for ${awaits}${why}`];
  }
  if (crashLoop !== undefined) {
    return ["degraded", `workers end again and again: ${crashLoop}`];
  }
  if (waiting !== undefined && (ready < enough || ready === 0)) {
    return ["degraded", `${ready} workers are ready; ${waiting}`];
  }
  if (ready < enough) {
    const why = lastFault === undefined ? "" : `; the last one that ended: ${lastFault}`;
    return ["degraded", `${ready} of ${enough} workers are ready${why}`];
  }
  return ["ready", ""];
}
