/** Queue positions: how many tasks are ahead of a waiting one, and when it should start. */
import { perSecond, TokenBucket } from "../collections/token-bucket.ts";
import type { Storage } from "../storage/storage.ts";
import type { Task } from "../tasks/task.ts";
import { estimateStart, type RunTimes } from "./estimate.ts";

/** Tasks ahead that a position counts: its cost does not grow with the queue. */
const MAX_POSITION = 1_000;

/** Positions looked up: more would take time from the work that is waited for. */
const POSITION_LOOKUPS_PER_SECOND = 100;

/** The place of a waiting task in its queue. */
export interface QueuePosition {
  /** Tasks ahead of it; 1,000 means 1,000 or more. */
  readonly position: number;
  /** The expected start in milliseconds since 1970; undefined when it cannot be estimated. */
  readonly estimatedStartMs: number | undefined;
  /** The worker that it waits for, for people; undefined where one that runs it is here or starts here. */
  readonly awaited?: string | undefined;
}

interface QueuePositionsOptions {
  readonly storage: Storage;
  readonly runTimes: RunTimes;
  readonly slots: (endpoint: string) => number;
  /** The worker that an endpoint waits for, for people. Default: it waits for none. */
  readonly awaited?: (endpoint: string) => string | undefined;
  readonly now: () => number;
}

/** Looks up the positions of waiting tasks, at most 100 a second. */
export class QueuePositions {
  readonly #options: QueuePositionsOptions;
  readonly #rateLimit: TokenBucket;

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
      storage.countTasks({ deploymentId }),
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
