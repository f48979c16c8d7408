import type { Storage } from "../storage/storage.ts";
import type { Task } from "../tasks/task.ts";
import { TokenBucket } from "../time/token-bucket.ts";
import { estimateStart, type RunTimes } from "./estimate.ts";

/** Tasks ahead are counted so far: the cost of a position does not grow with the queue. */
const MAX_POSITION = 1_000;

/** Positions looked up: more would take time from the work that is waited for. */
const LOOKUPS_PER_SECOND = 100;

/** Where a waiting task stands. */
export interface QueuePosition {
  /** Tasks that start before it; `MAX_POSITION` means that or more. */
  readonly position: number;
  /** When it can be expected to start; undefined when that cannot be said. */
  readonly estimatedStartMs: number | undefined;
}

export interface QueuePositionsOptions {
  readonly storage: Storage;
  readonly runTimes: RunTimes;
  readonly slots: (endpoint: string) => number;
  readonly now: () => number;
}

/** Finds the places of waiting tasks in the queue, so many a second. */
export class QueuePositions {
  readonly #options: QueuePositionsOptions;
  readonly #budget: TokenBucket;

  constructor(options: QueuePositionsOptions) {
    this.#options = options;
    this.#budget = new TokenBucket(LOOKUPS_PER_SECOND, options.now);
  }

  async find({ deploymentId, taskId, endpoint }: Task): Promise<QueuePosition | undefined> {
    if (!this.#budget.take()) {
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
    if (position >= MAX_POSITION) {
      return { position, estimatedStartMs: undefined };
    }
    const running = counts.find((count) => count.endpoint === endpoint)?.running ?? 0;
    // More may run than fit here: on other nodes, whose slots work on the same queue.
    const slots = Math.max(slotsOf(endpoint), running);
    const meanRunMs = runTimes.mean(endpoint);
    const question = { position, slots, running, meanRunMs, nowMs: now() };
    return { position, estimatedStartMs: estimateStart(question) };
  }
}
