/** The alarm for delayed tasks: wakes the queue of one deployment when they become due. */
import type { Log } from "../../log/log.ts";
import type { Storage } from "../../storage/storage.ts";
import { Alarm } from "../../time/alarm.ts";

export interface DueTasksOptions {
  readonly deploymentId: string;
  readonly storage: Storage;
  readonly log: Log;
  readonly now: () => number;
}

/**
 * Rings when delayed tasks become due: those that this node stored, and those
 * that it finds in the storage, such as tasks from before its start. A ring is
 * a hint; the node's maintenance finds the tasks that it misses.
 */
export class DueTasks implements Disposable {
  readonly #options: DueTasksOptions;
  readonly #alarm: Alarm;
  /** When the next task found in the storage becomes due. */
  #foundMs: number | undefined;

  constructor(options: DueTasksOptions, ring: () => void) {
    this.#options = options;
    this.#alarm = new Alarm(() => {
      ring();
      if (this.#foundMs !== undefined && this.#foundMs <= options.now()) {
        void this.find();
      }
    }, options.now);
  }

  /** A task is due at this time (milliseconds since 1970). */
  expect(runAtMs: number): void {
    this.#alarm.set(runAtMs);
  }

  /** Looks up the next due time in the storage, and again each time it is reached. */
  async find(): Promise<void> {
    const { deploymentId, storage, log, now } = this.#options;
    this.#foundMs = undefined;
    try {
      this.#foundMs = await storage.nextRunAt({ deploymentId, nowMs: now() });
    } catch (err) {
      log.warn({ err }, "the time of the next delayed task could not be looked up");
    }
    if (this.#foundMs !== undefined) {
      this.expect(this.#foundMs);
    }
  }

  [Symbol.dispose](): void {
    this.#foundMs = undefined;
    this.#alarm[Symbol.dispose]();
  }
}
