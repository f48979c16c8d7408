/**
 * Estimates from Little's law: when a waiting task will start, and when a full
 * queue has room again. With k slots and a mean run time of m, one slot becomes
 * free every m / k on average.
 */

import { perSecond, TokenBucket } from "../collections/token-bucket.ts";
import type { QueueCount } from "../storage/queues.ts";
import type { Storage } from "../storage/storage.ts";
import type { Task } from "../tasks/task.ts";
import { SharedReads } from "../time/shared-reads.ts";

/** The weight of the newest run in the mean: about the last 20 runs count. */
const WEIGHT = 0.1;

/** Shortest `retry-after` that a full queue names. */
const MIN_QUEUE_FULL_RETRY_MS = 1_000;
/** Longest `retry-after` that a full queue names. */
const MAX_QUEUE_FULL_RETRY_MS = 600_000;
/** The `retry-after` that a full queue names before any run was measured. */
const DEFAULT_QUEUE_FULL_RETRY_MS = 5_000;
/** The fraction of a full queue that should have drained before its callers come back. */
const DRAINED_PART = 0.01;

/** Tasks ahead that a position counts: its cost does not grow with the queue. */
export const MAX_POSITION = 1_000;

/** Positions looked up: more would take time from the work that is waited for. */
const POSITION_LOOKUPS_PER_SECOND = 100;

/** Exponentially weighted means of the run times of endpoints, in milliseconds, and how many runs began. */
export class RunTimes {
  readonly #means = new Map<string, { meanMs: number; runs: number }>();
  readonly #began = new Map<string, number>();

  /** A run of the endpoint begins. */
  begin(endpoint: string): void {
    this.#began.set(endpoint, this.began(endpoint) + 1);
  }

  /** The number of runs that ever began here. */
  began(endpoint: string): number {
    return this.#began.get(endpoint) ?? 0;
  }

  /** A call of the endpoint ran for `ranMs`. */
  add(endpoint: string, ranMs: number): void {
    const { meanMs, runs } = this.#means.get(endpoint) ?? { meanMs: 0, runs: 0 };
    // The first runs weigh the same, so that the very first does not dominate the mean.
    const weight = Math.max(1 / (runs + 1), WEIGHT);
    const nextMs = meanMs + weight * (Math.max(ranMs, 0) - meanMs);
    this.#means.set(endpoint, { meanMs: nextMs, runs: runs + 1 });
  }

  /** undefined before the first run. */
  mean(endpoint: string): number | undefined {
    return this.#means.get(endpoint)?.meanMs;
  }
}

interface StartQuestion {
  /** Tasks that start before this one. */
  readonly position: number;
  /** Tasks of the endpoint that can run at a time. */
  readonly slots: number;
  /** Tasks of the endpoint that run now. */
  readonly running: number;
  readonly meanRunMs: number | undefined;
  readonly nowMs: number;
}

/** The expected start in milliseconds since 1970; undefined when nothing was measured yet. */
export function estimateStart(question: StartQuestion): number | undefined {
  const { position, slots, running, meanRunMs, nowMs } = question;
  if (meanRunMs === undefined || slots <= 0) {
    return undefined;
  }
  const ends = Math.max(position + 1 - Math.max(slots - running, 0), 0);
  return nowMs + Math.round((ends * meanRunMs) / slots);
}

/**
 * How long a caller should wait after QUEUE_FULL, in milliseconds: until a
 * hundredth of the queue has drained, and at least one task. Callers refused
 * together come back together, so one free place is not enough for a long queue.
 */
export function retryAfter(question: {
  readonly queueLimit: number;
  readonly slots: number;
  readonly meanRunMs: number | undefined;
}): number {
  const { queueLimit, slots, meanRunMs } = question;
  if (meanRunMs === undefined || slots <= 0) {
    return DEFAULT_QUEUE_FULL_RETRY_MS;
  }
  const places = Math.max(1, queueLimit * DRAINED_PART);
  return Math.min(
    Math.max(Math.ceil((places * meanRunMs) / slots), MIN_QUEUE_FULL_RETRY_MS),
    MAX_QUEUE_FULL_RETRY_MS,
  );
}

/** The place of a waiting task in its queue. */
export interface QueuePosition {
  /** Tasks ahead of it; 1,000 means 1,000 or more. */
  readonly position: number;
  /** The expected start in milliseconds since 1970; undefined when it cannot be estimated. */
  readonly estimatedStartMs: number | undefined;
  /** The worker that it waits for, for people; undefined where one that runs it is here or starts here. */
  readonly awaited?: string | undefined;
}

export interface QueuePositionsOptions {
  readonly storage: Storage;
  readonly runTimes: RunTimes;
  readonly slots: (endpoint: string) => number;
  /** The worker that an endpoint waits for, for people. Default: it waits for none. */
  readonly awaited?: (endpoint: string) => string | undefined;
  readonly now: () => number;
}

/** How old the counts of a queue may be when a start is estimated. */
const COUNTED_FOR_MS = 1_000;

/** Looks up the positions of waiting tasks, at most 100 a second. */
export class QueuePositions {
  readonly #options: QueuePositionsOptions;
  readonly #rateLimit: TokenBucket;
  readonly #counts = new SharedReads<QueueCount[]>({
    maxAgeMs: COUNTED_FOR_MS,
    now: () => performance.now(),
  });

  constructor(options: QueuePositionsOptions) {
    this.#options = options;
    this.#rateLimit = new TokenBucket({
      ...perSecond(POSITION_LOOKUPS_PER_SECOND),
      nowMs: options.now,
    });
  }

  /** Undefined beyond the rate limit, and for a task that does not wait. */
  async find({ deploymentId, taskId, endpoint }: Task): Promise<QueuePosition | undefined> {
    if (!this.#rateLimit.take()) {
      return undefined;
    }
    const { storage, runTimes, slots: slotsOf, now } = this.#options;
    const [position, counts] = await Promise.all([
      storage.queuePosition({ deploymentId, taskId, nowMs: now(), limit: MAX_POSITION }),
      this.#counts.get(deploymentId, () => storage.countTasks({ deploymentId })),
    ]);
    if (position === undefined) {
      return undefined;
    }
    const awaited = this.#options.awaited?.(endpoint);
    if (position >= MAX_POSITION || awaited !== undefined) {
      return { position, estimatedStartMs: undefined, awaited };
    }
    const running = counts.find((count) => count.endpoint === endpoint)?.running ?? 0;
    // Other nodes work on the same queue, so more tasks may run than this node has slots.
    const slots = Math.max(slotsOf(endpoint), running);
    const meanRunMs = runTimes.mean(endpoint);
    const question = { position, slots, running, meanRunMs, nowMs: now() };
    return { position, estimatedStartMs: estimateStart(question) };
  }
}
