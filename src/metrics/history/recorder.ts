/**
 * The recorder: every ten seconds it samples the deployments on this node and
 * stores what they did as one batch of rows.
 *
 * The coarser resolutions are summed in memory and stored once a minute, and
 * when the node ends: whatever was begun is replaced by its longer sum. So a
 * node that is killed loses at most ten seconds of the finest resolution and a
 * minute of the others, and nothing is ever read to be summed.
 *
 * A deployment that rests (nothing happened, no worker is up) is stored once as
 * such, and then no more until something happens. There is one row more for each
 * organization, the sum of its deployments, so that a question for all of them
 * costs no more than for one; its tasks and its calls are in it by deployment and endpoint.
 */
import { randomUUID } from "node:crypto";
import type { HistoryRow, MetricsStorage } from "../../storage/metrics/metrics.ts";
import type { Metrics } from "../metrics.ts";
import { Yielder } from "../yielder.ts";
import { type Interval, IntervalSum, isQuiet, together } from "./interval.ts";
import { HISTORY_INTERVAL_MS, HISTORY_SLACK_MS, LEVELS } from "./range.ts";
import { Sampler } from "./sampler.ts";
import { writeInterval } from "./stored.ts";
import { TaskTally } from "./task-tally.ts";

/** Interval at which a node stores the coarser resolutions. */
const COARSE_WRITE_INTERVAL_MS = 60_000;

/** How long after the end of an interval a node samples at most. */
const MAX_TICK_OFFSET_MS = 500;

/** A tick that is this late still belongs to the interval before. */
const MAX_TICK_DELAY_MS = 1_000;

/** Rows that wait for a database that does not answer; the oldest are dropped. */
const MAX_PENDING_HISTORY_ROWS = 5_000;

/** Rows of metrics over time that are deleted in one transaction. */
const MAX_PRUNED_HISTORY_ROWS = 1_000;

interface RecorderOptions {
  readonly metrics: Metrics;
  readonly storage: MetricsStorage;
  readonly now: () => number;
  /** Called when rows could not be stored; the next tick tries again. */
  readonly onError: (err: unknown) => void;
}

interface Kept {
  readonly organizationId: string;
  readonly deploymentId: string;
  /** By resolution. */
  readonly sums: Map<number, Begun>;
  /** Nothing was going on in the last interval. */
  quiet: boolean;
}

/** An interval that may still become longer. */
interface Begun {
  readonly beganAtMs: number;
  readonly sum: IntervalSum;
  /** Its newest part is not in a row yet. */
  changed: boolean;
}

export class Recorder implements AsyncDisposable {
  readonly #options: RecorderOptions;
  readonly #recorder = randomUUID();
  readonly #sampler = new Sampler();
  readonly #kept = new Map<string, Kept>();
  /** Rows to store, by their keys: no statement may have one twice. */
  readonly #pending = new Map<string, HistoryRow>();
  /** How long after the end of an interval it is stored: not all nodes at once. */
  readonly #offsetMs = Math.random() * MAX_TICK_OFFSET_MS;
  #sampledMs: number;
  #timer: NodeJS.Timeout | undefined;
  #underWay: Promise<void> = Promise.resolve();
  #ended = false;

  constructor(options: RecorderOptions) {
    this.#options = options;
    this.#sampledMs = options.now();
  }

  start(): void {
    const sinceLastMs = (this.#options.now() - this.#offsetMs) % HISTORY_INTERVAL_MS;
    const untilNextMs = HISTORY_INTERVAL_MS - sinceLastMs;
    this.#timer = setTimeout(() => {
      this.#underWay = this.record().finally(() => {
        if (!this.#ended) {
          this.start();
        }
      });
    }, untilNextMs).unref();
  }

  /** Samples, and stores what is due; `all`: the coarser resolutions, too. Never rejects. */
  async record(all = false): Promise<void> {
    try {
      const nowMs = this.#options.now();
      const tickMs = nowMs - MAX_TICK_DELAY_MS;
      const beganAtMs = tickMs - (tickMs % HISTORY_INTERVAL_MS);
      await this.#sample(beganAtMs, nowMs);
      const isMinute = (beganAtMs + HISTORY_INTERVAL_MS) % COARSE_WRITE_INTERVAL_MS === 0;
      await this.#collect(beganAtMs, all || isMinute);
      await this.#store();
    } catch (err) {
      this.#options.onError(err);
    }
  }

  /** Deletes what is older than it is kept; any node does it for all. */
  async prune(): Promise<void> {
    const { storage, now } = this.#options;
    for (const { resolutionMs, keptMs } of LEVELS) {
      const beforeMs = now() - keptMs - 2 * HISTORY_SLACK_MS;
      const limit = MAX_PRUNED_HISTORY_ROWS;
      while ((await storage.pruneHistory({ resolutionMs, beforeMs, limit })) >= limit) {}
    }
  }

  /** Stores the last, unfinished intervals. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended = true;
    clearTimeout(this.#timer);
    await this.#underWay;
    await this.record(true);
  }

  async #sample(beganAtMs: number, nowMs: number): Promise<void> {
    const coveredMs = Math.min(Math.max(nowMs - this.#sampledMs, 1), HISTORY_INTERVAL_MS);
    this.#sampledMs = nowMs;
    const yielder = new Yielder();
    const organizations = new Map<string, Interval & { readonly tasks: TaskTally }>();
    for (const { organizationId, deploymentId, metrics } of [...this.#options.metrics.measured()]) {
      const { interval, ...byEndpoint } = this.#sampler.sample(metrics, coveredMs);
      this.#add({ organizationId, deploymentId }, beganAtMs, interval);
      const others = organizations.get(organizationId);
      const nothing: Interval = { coveredMs, platform: new Map(), custom: [] };
      const tasks = others?.tasks ?? new TaskTally();
      for (const [endpoint, sums] of byEndpoint.tasks) {
        tasks.add(deploymentId, endpoint, sums);
      }
      for (const [endpoint, sums] of byEndpoint.calls) {
        tasks.addCalls(deploymentId, endpoint, sums);
      }
      organizations.set(organizationId, { ...together(others ?? nothing, interval), tasks });
      if (yielder.spent(100)) {
        await yielder.rest();
      }
    }
    for (const [organizationId, interval] of organizations) {
      this.#add({ organizationId, deploymentId: "" }, beganAtMs, interval);
    }
  }

  #add(
    { organizationId, deploymentId }: Pick<Kept, "organizationId" | "deploymentId">,
    beganAtMs: number,
    interval: Interval,
  ): void {
    const key = JSON.stringify([organizationId, deploymentId]);
    const kept = this.#kept.get(key) ?? {
      organizationId,
      deploymentId,
      sums: new Map(),
      quiet: true,
    };
    this.#kept.set(key, kept);
    const rests = isQuiet(interval) && kept.quiet;
    kept.quiet = isQuiet(interval);
    for (const { resolutionMs } of LEVELS) {
      const levelBeganAtMs = beganAtMs - (beganAtMs % resolutionMs);
      const before = kept.sums.get(resolutionMs);
      if (before?.beganAtMs === levelBeganAtMs) {
        before.sum.add(interval);
        before.changed = true;
        continue;
      }
      if (before !== undefined) {
        this.#write(kept, resolutionMs, before);
        kept.sums.delete(resolutionMs);
      }
      if (!rests) {
        const sum = new IntervalSum();
        sum.add(interval);
        kept.sums.set(resolutionMs, { beganAtMs: levelBeganAtMs, sum, changed: true });
      }
    }
  }

  /** Makes the rows that are due; forgets the sums whose time is over. */
  async #collect(beganAtMs: number, coarse: boolean): Promise<void> {
    const yielder = new Yielder();
    const endMs = beganAtMs + HISTORY_INTERVAL_MS;
    for (const [key, kept] of this.#kept) {
      for (const [resolutionMs, begun] of kept.sums) {
        const isOver = begun.beganAtMs + resolutionMs <= endMs;
        if (resolutionMs === HISTORY_INTERVAL_MS || coarse || isOver) {
          this.#write(kept, resolutionMs, begun);
        }
        // It stays for another tick, which may still belong to it.
        if (begun.beganAtMs + resolutionMs < endMs) {
          kept.sums.delete(resolutionMs);
        }
      }
      if (kept.sums.size === 0) {
        this.#kept.delete(key);
      }
      if (yielder.spent(100)) {
        await yielder.rest();
      }
    }
  }

  #write({ organizationId, deploymentId }: Kept, resolutionMs: number, begun: Begun): void {
    if (begun.changed) {
      begun.changed = false;
      const { beganAtMs, sum } = begun;
      const values = writeInterval(sum.interval);
      const recorder = this.#recorder;
      const key = JSON.stringify([organizationId, deploymentId, resolutionMs, beganAtMs]);
      // The newest come last: the oldest are dropped when there are too many.
      this.#pending.delete(key);
      this.#pending.set(key, {
        organizationId,
        deploymentId,
        resolutionMs,
        beganAtMs,
        recorder,
        ...values,
      });
    }
  }

  async #store(): Promise<void> {
    const rows = [...this.#pending.values()];
    if (rows.length === 0) {
      return;
    }
    try {
      await this.#options.storage.putHistory({ rows });
      this.#pending.clear();
    } catch (err) {
      for (const key of [...this.#pending.keys()].slice(0, -MAX_PENDING_HISTORY_ROWS)) {
        this.#pending.delete(key);
      }
      throw err;
    }
  }
}
