import type { Storage } from "../storage/storage.ts";
import type { Task } from "../tasks/task.ts";
import { Budget } from "../time/token-bucket.ts";
import { estimateStart, type RunTimes } from "./estimate.ts";

/** Tasks ahead are counted so far: the cost of a position does not grow with the queue. */
const MAX_POSITION = 1_000;

/** Positions looked up: more would take time from the work that is waited for. */
const LOOKUPS_PER_SECOND = 100;

/** Where a waiting task stands. */
export interface QueuePlace {
  /** Tasks that start before it; `MAX_POSITION` means that or more. */
  readonly position: number;
  /** When it can be expected to start; undefined when that cannot be said. */
  readonly estimatedStartMs: number | undefined;
}

export interface PlacesOptions {
  readonly storage: Storage;
  readonly runTimes: RunTimes;
  readonly slots: (endpoint: string) => number;
  readonly now: () => number;
}

/** Finds the places of waiting tasks in the queue, so many a second. */
export class Places {
  readonly #options: PlacesOptions;
  readonly #budget: Budget;

  constructor(options: PlacesOptions) {
    this.#options = options;
    this.#budget = new Budget(LOOKUPS_PER_SECOND, options.now);
  }

  async find({ deploymentId, taskId, endpoint }: Task): Promise<QueuePlace | undefined> {
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
