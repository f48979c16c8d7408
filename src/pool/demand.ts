/**
 * The demand of one endpoint: how many slots it needs on this node now. It is a pure
 * function of the endpoint's load and of the loads before.
 *
 * The callers of an api wait, so each call that runs or waits needs a slot, and a fifth
 * of the slots stays free above the mean load of the last seconds (exponentially
 * weighted).
 *
 * Tasks may wait for the deployment's queue time. In that time a slot that is free
 * starts `floor(queueTime / runTime) + 1` runs, and one that is taken starts one fewer,
 * as the run in it has to end first. So `running` and `due` runs need
 * `(running + due) / (floor(queueTime / runTime) + 1)` slots, and at least `running`.
 * Tasks that are longer than the queue time get a slot each. Those of an endpoint with
 * batches share runs. Callers of a mounted server whose requests may be tasks wait for its slots,
 * too, and need one each.
 *
 * Tasks that keep coming need `rate × runTime` slots (Little's law), however short the
 * queue is: with fewer it would grow until its tasks wait too long. The rate is the
 * lower of two exponentially weighted means, of the last ten seconds and of twice the
 * queue time: the short one forgets a load that has ended, and the long one does not
 * take a burst for a rate. A run that is longer than the time of a mean counts for that
 * time only, because tasks that came within it still run or wait.
 */

import type { EndpointManifest } from "../protocol/manifest.ts";

/** Time in which the weight of past load falls to a third. */
const LOAD_SMOOTHING_MS = 10_000;
/** Part of the slots for apis that may be taken on average. */
const FULLNESS = 0.8;
/** A mean number of slots below this counts as no load. */
const NEGLIGIBLE = 0.02;

export interface EndpointLoad {
  readonly name: string;
  readonly kind: EndpointManifest["kind"];
  /** Calls of the endpoint, or batches, that a worker runs at a time. */
  readonly concurrency: number;
  /** The most calls of a batch; 1 without batches. */
  readonly batchSize: number;
  /** Slots that are taken here. */
  readonly running: number;
  /** Calls that wait for a slot here. */
  readonly waiting: number;
  /** This node's share of the tasks that could start now. */
  readonly due: number;
  /** Attempts that this node has ever started. */
  readonly started: number;
  /** undefined before any run was measured, and for apis. */
  readonly meanRunMs: number | undefined;
  /** Workers that run it, and stand for no other one because they do not run all. Default: 0. */
  readonly helpers?: number;
}

/** What is remembered of an endpoint's loads. */
export interface PastLoad {
  /** Slots for apis. */
  readonly meanLoad: number;
  /** Tasks that came per millisecond, over the last seconds and over a longer time. */
  readonly recentRate: number;
  readonly longRate: number;
  readonly started: number;
  readonly due: number;
}

interface DemandFacts {
  /** Time since the load before. */
  readonly passedMs: number;
  /** How long a task that is due should wait for its start at most. */
  readonly queueTimeMs: number;
}

interface Demand {
  /** May be a fraction. */
  readonly slots: number;
  readonly past: PastLoad;
}

/** The demand of an endpoint; `before` is undefined for its first load. */
export function demandOf(
  load: EndpointLoad,
  before: PastLoad | undefined,
  facts: DemandFacts,
): Demand {
  return load.kind === "api" ? ofApi(load, before, facts) : ofTasks(load, before, facts);
}

/** How many runs start in a slot within the queue time, the one that finds it free included. */
export function runsWithin(queueTimeMs: number, meanRunMs: number | undefined): number {
  return meanRunMs === undefined ? 1 : Math.floor(queueTimeMs / Math.max(meanRunMs, 1)) + 1;
}

function ofApi(load: EndpointLoad, before: PastLoad | undefined, { passedMs }: DemandFacts) {
  const now = load.running + load.waiting / load.batchSize;
  const earlier = before?.meanLoad ?? 0;
  const meanLoad = earlier + weightOf(passedMs, LOAD_SMOOTHING_MS) * (now - earlier);
  const lasting = meanLoad < NEGLIGIBLE ? 0 : meanLoad / FULLNESS;
  const past = { meanLoad, recentRate: 0, longRate: 0, started: 0, due: 0 };
  return { slots: Math.max(now, lasting), past };
}

function ofTasks(load: EndpointLoad, before: PastLoad | undefined, facts: DemandFacts): Demand {
  const { batchSize, running, waiting, due, started, meanRunMs } = load;
  const { queueTimeMs } = facts;
  const passedMs = Math.max(facts.passedMs, 1);
  const longMs = Math.max(LOAD_SMOOTHING_MS, 2 * queueTimeMs);
  // What came is what started, and by how much more are due than before.
  const came = Math.max(0, started - (before?.started ?? started) + due - (before?.due ?? 0));
  const rate = (earlier: number, overMs: number): number =>
    earlier + weightOf(passedMs, overMs) * (came / passedMs - earlier);
  const recentRate = rate(before?.recentRate ?? 0, LOAD_SMOOTHING_MS);
  const longRate = rate(before?.longRate ?? 0, longMs);
  const lasting =
    meanRunMs === undefined
      ? 0
      : Math.min(
          recentRate * Math.min(meanRunMs, LOAD_SMOOTHING_MS),
          longRate * Math.min(meanRunMs, longMs),
        ) / batchSize;
  const queued = (running + due / batchSize) / runsWithin(queueTimeMs, meanRunMs);
  return {
    slots: Math.max(running + waiting, queued, lasting - NEGLIGIBLE),
    past: { meanLoad: 0, recentRate, longRate, started, due },
  };
}

/** The weight of a load that has lasted for `passedMs` in an exponentially weighted mean. */
function weightOf(passedMs: number, overMs: number): number {
  return 1 - Math.exp(-passedMs / overMs);
}
