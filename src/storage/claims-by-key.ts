/** How endpoints are claimed whose callers share them by their keys, and the bounds of such claims. */
import type { ByKeyManifest } from "../protocol/manifest.ts";

/** What is to be claimed later of an endpoint that goes by keys. */
export interface LaterClaim {
  readonly endpoint: string;
  /** In how many milliseconds a task may start that waits for its key's rate; of suspects nothing is said. */
  readonly inMs?: number | undefined;
  /**
   * Further keys have tasks waiting, which the claim has not looked at: the next one goes on with those.
   * `around`: it came past the last key, and went on with the first. Absent: it has looked at all, or at
   * those that it was to look at.
   */
  readonly cut?: "on" | "around" | undefined;
}

/** How an endpoint is claimed whose callers share it by their keys. */
export interface ClaimByKey extends ByKeyManifest {
  /**
   * Looks at these keys and no others, but for those of which a start has left the window of their rate
   * since that was last looked for. At most 200. Absent: at all in turn.
   */
  readonly keys?: readonly string[] | undefined;
  /**
   * Tasks may wait that were stored without a key, before the endpoint went by keys: those among the
   * first 10,000 of its queue get the empty one.
   */
  readonly unkeyed?: boolean | undefined;
}

/** Keys that a claim passes whose tasks cannot start; the next one goes on with those after them. */
export const MAX_KEYS_LOOKED_AT = 1_000;
/** After how long the next keys are looked at, where a claim has not looked at all that it was to. */
export const LOOK_ON_MS = 100;
/** Starts that have left the window of their rate, whose keys a claim looks at; the next one goes on. */
export const MAX_STARTS_LOOKED_AT = 200;

/** Keys that a claim by seconds compares; the next one goes on with those after them. */
export const MAX_KEYS_COMPARED = 200;
/** For how long it counts what a key has had, and the most that one attempt counts. */
export const KEY_TIME_MS = 86_400_000;
/** After more runs than this, the older ones count half: recent runs say best how long the next one takes. */
export const MAX_RUNS_KNOWN = 32;

/** Tasks of a queue that are looked at for such without a key. */
export const MAX_UNKEYED_LOOKED_AT = 10_000;

/** Suspects of an endpoint that goes by keys that a claim looks at for some whose key has room. */
export const MAX_SUSPECTS_LOOKED_AT = 100;
