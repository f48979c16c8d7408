/**
 * The autoscaling decision: how many workers a deployment needs on this node. It
 * is a pure function of the current load and of when workers were last needed:
 *
 * - An endpoint needs enough workers to give a slot to each of its calls and
 *   tasks that run or wait. Short tasks count for less, because a slot finishes
 *   many of them before another worker would be ready. Endpoints have their own
 *   slots, so the one that needs most decides.
 * - For apis, whose callers wait, a fifth of the slots stays free above the mean
 *   load of the last seconds (exponentially weighted).
 * - Scaling up is immediate. A worker that was not needed for a minute goes; the
 *   last one goes after five, because the next call would wait for a start.
 */

import type { EndpointManifest } from "../protocol/manifest.ts";

/** Mean run time at which a due task counts for a whole slot; shorter ones count for less. */
const FULL_SLOT_RUN_MS = 1_000;
/** Time in which the weight of past load falls to a third. */
const LOAD_SMOOTHING_MS = 10_000;
const FULLNESS = 0.8;
/** A mean below this counts as no load. */
const NEGLIGIBLE = 0.02;

/** How long a worker that is not needed stays. */
const IDLE_WORKER_KEEP_MS = 60_000;
/** How long the last worker of a deployment stays, because the next call would wait for another. */
const LAST_WORKER_KEEP_MS = 300_000;

export interface EndpointLoad {
  readonly name: string;
  readonly kind: EndpointManifest["kind"];
  /** Calls of the endpoint that a worker runs at a time. */
  readonly concurrency: number;
  /** Calls and tasks that run here. */
  readonly running: number;
  /** Calls that wait for a slot here. */
  readonly waiting: number;
  /** This node's share of the tasks that could start now. */
  readonly due: number;
  /** undefined before any run was measured. */
  readonly meanRunMs: number | undefined;
}

export interface Bounds {
  readonly min: number;
  readonly max: number;
}

export interface ScalerState {
  /** At index n, when n + 1 workers were last needed. */
  readonly neededAtMs: readonly number[];
  /** The mean load of each endpoint. */
  readonly means: ReadonlyMap<string, number>;
  readonly decidedAtMs: number;
}

export interface Decision {
  readonly workers: number;
  readonly state: ScalerState;
}

export interface DecisionFacts {
  readonly nowMs: number;
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
    means: new Map(),
    decidedAtMs: nowMs,
  };
}

/** Decides how many workers there should be. Times are from a monotonic clock. */
export function decide(
  before: ScalerState,
  endpoints: readonly EndpointLoad[],
  { min, max, nowMs, startable = max }: Bounds & DecisionFacts,
): Decision {
  const passedMs = Math.max(0, nowMs - before.decidedAtMs);
  const weight = 1 - Math.exp(-passedMs / LOAD_SMOOTHING_MS);
  const means = new Map<string, number>();
  let needed = 0;
  for (const endpoint of endpoints) {
    const load = loadOf(endpoint);
    const fullness = endpoint.kind === "api" ? FULLNESS : 1;
    const earlier = before.means.get(endpoint.name) ?? 0;
    const mean = earlier + weight * (load - earlier);
    means.set(endpoint.name, mean);
    const lasting = mean < NEGLIGIBLE ? 0 : mean / fullness;
    needed = Math.max(needed, Math.ceil(Math.max(load, lasting) / endpoint.concurrency));
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
  return {
    workers: Math.min(Math.max(neededAtMs.length, min), max),
    state: { neededAtMs, means, decidedAtMs: nowMs },
  };
}

/** The state after a worker was evicted: it is not kept. */
export function evicted(state: ScalerState): ScalerState {
  return { ...state, neededAtMs: state.neededAtMs.slice(0, -1) };
}

function loadOf({ running, waiting, due, meanRunMs = FULL_SLOT_RUN_MS }: EndpointLoad): number {
  return running + waiting + due * Math.min(1, meanRunMs / FULL_SLOT_RUN_MS);
}

/** True while the last of these workers is kept. */
function isKept(neededAtMs: readonly number[], nowMs: number): boolean {
  const keepMs = neededAtMs.length === 1 ? LAST_WORKER_KEEP_MS : IDLE_WORKER_KEEP_MS;
  return nowMs - (neededAtMs.at(-1) ?? 0) < keepMs;
}
