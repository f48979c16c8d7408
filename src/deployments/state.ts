/** The status of a deployment on one node, derived from facts about its pool and roll-outs. */
import type { Pool } from "../pool/pool.ts";
import { awaitedText } from "./placement.ts";

/** What a deployment does that finds no room in the budget of a node. */
export const WAITING_FOR_ROOM = "waiting for room on a node";

/** `waiting`: it serves, but its workers have to join, and none has joined this node. */
type ServingState = "starting" | "ready" | "degraded" | "failed" | "stopped" | "waiting";

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
  /** The revision that could not start; the previous one continues to serve. */
  readonly failed: FailedRevision | undefined;
  /** The last lines that workers wrote, when something is wrong. */
  readonly lines: readonly string[];
}

export interface FailedRevision {
  readonly revision: number | undefined;
  readonly reason: string;
}

interface StateFacts extends Omit<DeploymentStatus, "state" | "reason"> {
  /** Why a worker of what serves waits for room on the node; undefined when none does. */
  readonly waiting: string | undefined;
  /** True when a revision serves. */
  readonly loaded: boolean;
  readonly draining: boolean;
  /** Ready workers that may stand for those that this node starts. */
  readonly started: number;
  /** With fewer of those, the deployment is degraded. */
  readonly enough: number;
  readonly crashLoop: string | undefined;
  readonly lastFault: string | undefined;
  /** True when this node starts no worker, so that all have to join. */
  readonly startsNone: boolean;
  /** What endpoints wait for that this node does not run and no worker that joined serves. */
  readonly awaited: string | undefined;
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
  // Where this node runs only some endpoints, a joined worker may run none of them: it does not count.
  const isPartial = awaits !== undefined && !awaits.isWhole;
  return {
    loaded: revision !== undefined,
    draining,
    revision: revision?.number,
    ready: readyCount,
    wanted: size,
    started: isPartial ? readyCount - pool.joined.readyCount : readyCount,
    enough: Math.min(size, min ?? size),
    joinedFault: pool.joined.fault,
    startsNone: awaits?.isWhole === true,
    awaited: awaits && awaitedText(awaits, (name) => pool.serves({ name })),
    ...{ crashLoop, lastFault, waiting, failed, lines },
  };
}

/** The status that follows from these facts. */
export function statusOf(facts: StateFacts): DeploymentStatus {
  const { revision, ready, wanted, failed, lines } = facts;
  const [state, reason] = stateOf(facts);
  const told = ["ready", "starting", "waiting"].includes(state) ? [] : lines;
  return { state, reason, revision, ready, wanted, failed, lines: told };
}

function stateOf(facts: StateFacts): [ServingState, string] {
  const { draining, loaded, failed, revision, started, enough, crashLoop, lastFault } = facts;
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
    return ["starting", ""];
  }
  if (facts.startsNone) {
    return placedState(facts);
  }
  if (crashLoop !== undefined) {
    return ["degraded", `workers end again and again: ${crashLoop}`];
  }
  if (waiting !== undefined && (started < enough || started === 0)) {
    return ["degraded", `${started} workers are ready; ${waiting}`];
  }
  if (started < enough) {
    const why = lastFault === undefined ? "" : `; the last one that ended: ${lastFault}`;
    return ["degraded", `${started} of ${enough} workers are ready${why}`];
  }
  return placedState(facts);
}

/** Ready, unless endpoints wait for a worker that joins. */
function placedState({ awaited, joinedFault }: StateFacts): [ServingState, string] {
  if (awaited === undefined) {
    return ["ready", ""];
  }
  const why =
    joinedFault === undefined ? "" : `; the one that has joined cannot start it: ${joinedFault}`;
  return ["waiting", `${awaited}${why}`];
}
