/**
 * How many workers a deployment needs on this node. A decision is a pure
 * function of the load now and of when how many were last needed:
 *
 * - An endpoint needs as many workers as give a slot to everything of it that
 *   runs or waits. Tasks that are short count for less, because a slot takes
 *   many of them before another worker would be ready. Endpoints have slots of
 *   their own, so the one that needs most decides.
 * - For the calls of apis, whose callers wait, a fifth of the slots is kept free
 *   of what the load was over the last seconds (an exponentially weighted mean).
 * - More workers start at once. One that has not been needed for a minute
 *   goes, the last one after five, because the next call would wait for it.
 */

import type { EndpointManifest } from "../protocol/manifest.ts";

/** A task that runs so long counts for a slot. */
const WORTH_A_SLOT_MS = 1_000;
/** The weight of the past falls to a third in so long. */
const SMOOTHING_MS = 10_000;
const FULLNESS = 0.8;
/** What is left of a load that has ended. */
const NEGLIGIBLE = 0.02;

const KEEP_MS = 60_000;
const KEEP_LAST_MS = 300_000;

export interface EndpointLoad {
  readonly name: string;
  readonly kind: EndpointManifest["kind"];
  /** Calls that a worker runs at a time. */
  readonly concurrency: number;
  /** Calls and tasks that run here. */
  readonly running: number;
  /** Calls that wait for a slot here. */
  readonly waiting: number;
  /** Tasks that could start now, this node's part of them. */
  readonly due: number;
  /** undefined before any run was measured. */
  readonly meanRunMs: number | undefined;
}

export interface Bounds {
  readonly min: number;
  readonly max: number;
}

export interface ScalerState {
  /** When so many workers were last needed: at index 0 one, at index 1 two, … */
  readonly neededAtMs: readonly number[];
  /** Of each endpoint, the mean of what ran and waited. */
  readonly means: ReadonlyMap<string, number>;
  readonly decidedAtMs: number;
}

export interface Decision {
  readonly workers: number;
  readonly state: ScalerState;
}

/** Where it begins: as if the workers that there are had just been needed. */
export function firstState(workers: number, nowMs: number): ScalerState {
  return {
    neededAtMs: Array.from({ length: workers }, () => nowMs),
    means: new Map(),
    decidedAtMs: nowMs,
  };
}

/** Decides how many workers there should be now. */
export function decide(
  before: ScalerState,
  endpoints: readonly EndpointLoad[],
  { min, max, nowMs }: Bounds & { readonly nowMs: number },
): Decision {
  const passedMs = Math.max(0, nowMs - before.decidedAtMs);
  const weight = 1 - Math.exp(-passedMs / SMOOTHING_MS);
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
  return {
    workers: Math.min(Math.max(neededAtMs.length, min), max),
    state: { neededAtMs, means, decidedAtMs: nowMs },
  };
}

function loadOf({ running, waiting, due, meanRunMs = WORTH_A_SLOT_MS }: EndpointLoad): number {
  return running + waiting + due * Math.min(1, meanRunMs / WORTH_A_SLOT_MS);
}

/** True when the last of these workers stays. */
function isKept(neededAtMs: readonly number[], nowMs: number): boolean {
  const keepMs = neededAtMs.length === 1 ? KEEP_LAST_MS : KEEP_MS;
  return nowMs - (neededAtMs.at(-1) ?? 0) < keepMs;
}
