/**
 * The autoscaling decision: how many workers a deployment needs on this node. It
 * is a pure function of the current load and of when workers were last needed:
 *
 * - Endpoints have their own slots, so the one that needs most workers for its
 *   slots decides (`demand.ts`). Workers on other machines count like those that
 *   the node starts; it starts what they leave.
 * - Scaling up is immediate, and no more than double while the run time of an
 *   endpoint's tasks is unknown: the first that end say how many are needed.
 * - A worker that was not needed for a minute goes; the last one goes after five,
 *   because the next call would wait for a start. So at least a minute passes between
 *   a rise and the next fall, whatever the load does.
 */

import { demandOf, type EndpointLoad, type PastLoad } from "./demand.ts";

/** Slots are fractions, and sums of them may be above a whole number by less than this. */
const ROUNDING = 1e-9;

/** How long a worker that is not needed stays. */
const IDLE_WORKER_KEEP_MS = 60_000;
/** How long the last worker of a deployment stays, because the next call would wait for another. */
const LAST_WORKER_KEEP_MS = 300_000;

export interface Bounds {
  readonly min: number;
  readonly max: number;
}

export interface ScalerState {
  /** At index n, when n + 1 workers were last needed. */
  readonly neededAtMs: readonly number[];
  /** The loads of each endpoint before. */
  readonly past: ReadonlyMap<string, PastLoad>;
  readonly decidedAtMs: number;
}

interface Decision {
  /** The desired workers, here and on other machines. */
  readonly workers: number;
  /** Those that the node should have itself: what the joined ones leave. */
  readonly local: number;
  readonly state: ScalerState;
}

export interface DecisionFacts {
  readonly nowMs: number;
  /** How long a task that is due should wait for its start at most. */
  readonly queueTimeMs: number;
  /** Workers that take calls, here and on other machines. */
  readonly ready: number;
  /** Workers on other machines that take calls from this node. */
  readonly joined: number;
  /**
   * The number of workers that are there while others wait for room on the node: those
   * are not kept for the sake of having them. Default: there is room.
   */
  readonly startable?: number;
}

/** The initial state: all present workers count as needed now. */
export function firstState(workers: number, nowMs: number): ScalerState {
  return {
    neededAtMs: Array.from({ length: workers }, () => nowMs),
    past: new Map(),
    decidedAtMs: nowMs,
  };
}

/** Decides how many workers there should be. Times are from a monotonic clock. */
export function decide(
  before: ScalerState,
  endpoints: readonly EndpointLoad[],
  { min, max, nowMs, queueTimeMs, ready, joined, startable = max }: Bounds & DecisionFacts,
): Decision {
  const passedMs = Math.max(0, nowMs - before.decidedAtMs);
  const past = new Map<string, PastLoad>();
  let needed = 0;
  for (const load of endpoints) {
    const { name, concurrency, helpers = 0 } = load;
    const demand = demandOf(load, before.past.get(name), { passedMs, queueTimeMs });
    past.set(name, demand.past);
    const workers = Math.ceil(demand.slots / concurrency - ROUNDING) - helpers;
    needed = Math.max(needed, Math.min(workers, mostOf(load, ready)));
  }
  const wanted = Math.min(needed, max);
  const neededAtMs = before.neededAtMs
    .slice(0, max)
    .map((atMs, index) => (index < wanted ? nowMs : Math.min(atMs, nowMs)));
  while (neededAtMs.length < wanted) {
    neededAtMs.push(nowMs);
  }
  while (neededAtMs.length > 0 && !isKept(neededAtMs, nowMs)) {
    neededAtMs.pop();
  }
  neededAtMs.splice(Math.max(wanted, startable));
  const workers = Math.min(Math.max(neededAtMs.length, min), max);
  return {
    workers,
    local: Math.max(0, workers - joined),
    state: { neededAtMs, past, decidedAtMs: nowMs },
  };
}

/**
 * The state after a worker was evicted, which was idle: it is not kept, and does not come back for a load
 * that was there before. What runs or waits asks for it.
 */
export function evicted(state: ScalerState): ScalerState {
  const past = new Map(
    [...state.past].map(([name, load]) => [
      name,
      { ...load, meanLoad: 0, recentRate: 0, longRate: 0 },
    ]),
  );
  return { ...state, past, neededAtMs: state.neededAtMs.slice(0, -1) };
}

/** The most workers that an endpoint may ask for. */
function mostOf({ kind, meanRunMs, running, concurrency }: EndpointLoad, ready: number): number {
  return kind === "task" && meanRunMs === undefined
    ? Math.max(1, 2 * ready, Math.ceil(running / concurrency))
    : Number.POSITIVE_INFINITY;
}

/** True while the last of these workers is kept. */
function isKept(neededAtMs: readonly number[], nowMs: number): boolean {
  const keepMs = neededAtMs.length === 1 ? LAST_WORKER_KEEP_MS : IDLE_WORKER_KEEP_MS;
  return nowMs - (neededAtMs.at(-1) ?? 0) < keepMs;
}
