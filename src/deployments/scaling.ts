/**
 * The autoscaler of one deployment on this node: measures the load and resizes the
 * pool (`pool/scaler.ts` decides). It runs every second, and soon after a call or a
 * task has to wait for a slot. It asks the storage only when tasks may be waiting.
 *
 * Where the workers of this node run only some of the endpoints, two numbers are decided: the
 * load of those gives the workers of the node, and the load of the others how many should join.
 * A worker that joined stands for one of the node if it runs all that those run; one that runs
 * some of it takes load off them.
 */

import type { Log } from "../log/log.ts";
import { type EndpointLoad, runsWithin } from "../pool/demand.ts";
import type { Pool } from "../pool/pool.ts";
import { type Bounds, decide, evicted, firstState } from "../pool/scaler.ts";
import type { EndpointManifest } from "../protocol/manifest.ts";
import type { Calls } from "../queue/calls/calls.ts";
import type { RunTimes } from "../queue/estimate.ts";
import { DEFAULT_SETTINGS } from "../storage/deployment-settings.ts";
import type { DueCount } from "../storage/queues.ts";
import type { Storage } from "../storage/storage.ts";
import { Timer } from "../time/timer.ts";

/** Interval at which a deployment's number of workers is reconsidered. */
const SCALING_INTERVAL_MS = 1_000;
/** Least time between two decisions on scaling that were asked for, because many tasks come at once. */
const SCALING_MIN_INTERVAL_MS = 250;
/** Due tasks that are counted for scaling, of each endpoint: more of them ask for no more workers. */
const MAX_COUNTED_DUE_TASKS = 10_000;

/** The bounds of the number of workers on this node. */
export interface Scale extends Bounds {
  /** Nodes that run the deployment, including this one; due tasks are split between them. Default: 1. */
  readonly nodes?: number;
  /** How long a task that is due should wait for its start at most. Default: that of a new deployment. */
  readonly queueTimeMs?: number;
}

interface ScalingOptions {
  readonly deploymentId: string;
  readonly storage: Storage;
  readonly pool: Pool;
  readonly calls: Calls;
  readonly runTimes: RunTimes;
  readonly log: Log;
  readonly now: () => number;
  readonly endpoints: () => readonly EndpointManifest[];
  /** Whether no worker has told yet which endpoints there are. */
  readonly isBelieved: () => boolean;
}

export class Scaling implements AsyncDisposable {
  readonly #options: ScalingOptions;
  readonly #timer: Timer;
  #scale: Scale;
  /** Of the workers of this node, and of those that stand for them. */
  #state: ReturnType<typeof firstState>;
  #workers: number;
  /** Of workers that have to join, for endpoints that those of this node do not run. */
  #awaitedState = firstState(0, performance.now());
  #awaited = 0;
  /** True when tasks may be waiting for slots: until a count finds none. */
  #full = false;
  /** True when something waits for what a first worker tells of the service. */
  #isAsked = false;
  #soon: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #lastLookMs = Number.NEGATIVE_INFINITY;
  #ended = false;

  constructor(options: ScalingOptions, scale: Scale) {
    this.#options = options;
    this.#scale = scale;
    this.#workers = options.pool.size;
    this.#state = firstState(this.#workers, performance.now());
    this.#timer = new Timer(
      SCALING_INTERVAL_MS,
      () => this.#look(),
      (err) => options.log.error({ err }, "how many workers are needed could not be found out"),
    );
    this.wake();
  }

  /** The desired workers of the last decision: on this node, and on other machines that join it. */
  get desired(): number {
    return this.#workers + this.#awaited;
  }

  /** Of the desired workers, those that this node does not run or start itself: they have to join. */
  get wanted(): number {
    const { pool } = this.#options;
    if (pool.awaits?.isWhole === true) {
      return this.desired;
    }
    const own = pool.waiting === undefined ? pool.size : pool.present;
    return this.#awaited + Math.max(0, this.#workers - own);
  }

  /** True while tasks may be waiting for a slot, or for what a worker tells. */
  get tasksMayWait(): boolean {
    return this.#full || this.#isProving;
  }

  /** Changes the bounds. */
  set scale(scale: Scale) {
    this.#scale = scale;
    this.wake();
  }

  /** Another revision serves: counts its workers as needed from now. */
  revisionStarted(): void {
    const workers = Math.max(this.#workers, this.#options.pool.size);
    this.#state = firstState(workers, performance.now());
    this.#awaitedState = firstState(0, performance.now());
    this.wake();
  }

  /** A worker was ended because others needed its room. */
  workerEvicted(): void {
    this.#options.log.info({}, "an idle worker ends: others need its room on the node");
    this.#state = evicted(this.#state);
  }

  /** Tasks may be waiting that have no free slot. */
  tasksWait(): void {
    this.#full = true;
    this.wake();
  }

  /** Something waits that what serves does not know of: where that is believed, a worker shall tell. */
  prove(): void {
    if (this.#options.isBelieved() && !this.#isAsked) {
      this.#isAsked = true;
      this.wake();
    }
  }

  /** The load has changed: decides soon. */
  wake(): void {
    if (this.#soon === undefined && !this.#ended) {
      const sinceMs = performance.now() - this.#lastLookMs;
      this.#soon = setTimeout(
        () => {
          this.#soon = undefined;
          this.#look().catch((err: unknown) =>
            this.#options.log.error({ err }, "how many workers are needed could not be found out"),
          );
        },
        Math.max(0, SCALING_MIN_INTERVAL_MS - sinceMs),
      );
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended = true;
    clearTimeout(this.#soon);
    await this.#timer[Symbol.asyncDispose]();
    await this.#looking?.catch(() => {
      // Its caller has reported it.
    });
  }

  #look(): Promise<void> {
    this.#looking ??= this.#decide().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #decide(): Promise<void> {
    const { pool, log } = this.#options;
    const nowMs = performance.now();
    this.#lastLookMs = nowMs;
    const due = await this.#due();
    if (this.#ended) {
      return;
    }
    const [endpoints, awaited] = this.#endpoints();
    this.#decideAwaited(awaited, due, nowMs);
    const startsNone = pool.awaits?.isWhole === true;
    const joined = startsNone ? pool.joined.readyCount : pool.joined.readyFor(endpoints);
    const { max } = this.#scale;
    const min = this.#isProving ? Math.min(Math.max(this.#scale.min, 1), max) : this.#scale.min;
    const { workers, local, state } = decide(
      this.#state,
      endpoints.map((endpoint) => this.#load(endpoint, due, startsNone ? undefined : joined)),
      {
        ...{ min, max, nowMs, joined },
        queueTimeMs: this.#queueTimeMs,
        ready: pool.readyCount - pool.joined.readyCount + joined,
        ...((pool.waiting ?? pool.rolloutWaits) !== undefined && {
          startable: pool.present + joined,
        }),
      },
    );
    this.#state = state;
    this.#workers = workers;
    // Where workers have to join, the node starts none, and `desired` says how many are missing.
    if (!startsNone && local !== pool.size) {
      log.info({ from: pool.size, to: local, desired: workers }, "the number of workers changes");
      pool.resize(local);
    }
  }

  /** Decides how many workers should join for endpoints that those of this node do not run. */
  #decideAwaited(
    endpoints: readonly EndpointManifest[],
    due: readonly DueCount[],
    nowMs: number,
  ): void {
    const { workers, state } = decide(
      this.#awaitedState,
      endpoints.map((endpoint) => this.#load(endpoint, due)),
      {
        ...{ min: 0, max: this.#scale.max, nowMs, joined: 0 },
        queueTimeMs: this.#queueTimeMs,
        ready: this.#options.pool.joined.readyCount,
      },
    );
    this.#awaitedState = state;
    this.#awaited = workers;
  }

  get #isProving(): boolean {
    this.#isAsked &&= this.#options.isBelieved();
    return this.#isAsked;
  }

  get #queueTimeMs(): number {
    return this.#scale.queueTimeMs ?? DEFAULT_SETTINGS.queueTimeMs;
  }

  /** The endpoints that decide on the workers of this node, and those that wait for others. */
  #endpoints(): [EndpointManifest[], EndpointManifest[]] {
    const { pool, endpoints } = this.#options;
    const { awaits } = pool;
    const isAwaited = ({ name }: EndpointManifest): boolean =>
      awaits?.isWhole === false && awaits.endpoints.has(name);
    const all = endpoints();
    return [all.filter((each) => !isAwaited(each)), all.filter(isAwaited)];
  }

  /** `joined`: workers that joined and are counted as those of this node; others take load. */
  #load(endpoint: EndpointManifest, due: readonly DueCount[], joined?: number): EndpointLoad {
    const { pool, calls, runTimes } = this.#options;
    const { nodes = 1 } = this.#scale;
    return {
      name: endpoint.name,
      kind: endpoint.kind,
      concurrency: endpoint.concurrency,
      batchSize: endpoint.batch?.maxSize ?? 1,
      running: pool.running(endpoint),
      waiting: calls.waiting(endpoint),
      due: (due.find((count) => count.endpoint === endpoint.name)?.due ?? 0) / nodes,
      started: runTimes.began(endpoint.name),
      meanRunMs: runTimes.mean(endpoint.name),
      ...(joined !== undefined && { helpers: pool.joined.readyFor([endpoint]) - joined }),
    };
  }

  async #due(): Promise<readonly DueCount[]> {
    const { min, max } = this.#scale;
    // A number that is fixed follows no load; where it waits for room, whether tasks wait decides on that.
    if (!this.#full || (min >= max && this.#options.pool.waiting === undefined)) {
      return [];
    }
    this.#full = false;
    const { deploymentId, storage, now } = this.#options;
    const counts = await storage.countDue({ deploymentId, nowMs: now(), limit: this.#mostDue() });
    this.#full ||= counts.length > 0;
    return counts;
  }

  /** As many due tasks of an endpoint as could ask for another worker. */
  #mostDue(): number {
    const { endpoints, runTimes } = this.#options;
    const { nodes = 1, max } = this.#scale;
    const most = endpoints()
      .filter(({ kind }) => kind === "task")
      .map(({ name, concurrency, batch }) => {
        const runs = runsWithin(this.#queueTimeMs, runTimes.mean(name));
        return max * nodes * concurrency * (batch?.maxSize ?? 1) * runs;
      });
    return Math.min(Math.max(1, ...most), MAX_COUNTED_DUE_TASKS);
  }
}
