/** How a deployment fares on one node. */

export type ServingState = "starting" | "ready" | "degraded" | "failed" | "stopped";

export interface DeploymentStatus {
  readonly state: ServingState;
  /** For people; empty when all is well. */
  readonly reason: string;
  /** The revision that serves; undefined while there is none. */
  readonly revision: number | undefined;
  /** Workers that take calls. */
  readonly ready: number;
  /** Workers that there should be. */
  readonly wanted: number;
  /** The revision that was to serve and could not start; the one before goes on. */
  readonly failed: FailedRevision | undefined;
  /** The last lines that workers wrote, when something is wrong. */
  readonly lines: readonly string[];
}

export interface FailedRevision {
  readonly revision: number | undefined;
  readonly reason: string;
}

export interface StateFacts extends Omit<DeploymentStatus, "state" | "reason"> {
  /** There is a revision to run. */
  readonly loaded: boolean;
  readonly draining: boolean;
  /** Fewer ready workers than this are too few. */
  readonly enough: number;
  readonly crashLoop: string | undefined;
  readonly lastFault: string | undefined;
}

/** What these facts come to. */
export function statusOf(facts: StateFacts): DeploymentStatus {
  const { revision, ready, wanted, failed, lines } = facts;
  const [state, reason] = stateOf(facts);
  const told = state === "ready" || state === "starting" ? [] : lines;
  return { state, reason, revision, ready, wanted, failed, lines: told };
}

function stateOf(facts: StateFacts): [ServingState, string] {
  const { draining, loaded, failed, revision, ready, enough, crashLoop, lastFault } = facts;
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
  if (crashLoop !== undefined) {
    return ["degraded", `workers end again and again: ${crashLoop}`];
  }
  if (ready < enough) {
    const why = lastFault === undefined ? "" : `; the last one that ended: ${lastFault}`;
    return ["degraded", `${ready} of ${enough} workers are ready${why}`];
  }
  return ["ready", ""];
}
