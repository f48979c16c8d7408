/**
 * The expirer: fails tasks of all deployments that have not started by their
 * start deadline.
 *
 * Deadlines set on this node have an alarm, so their callers hear at once. The
 * node's maintenance finds those set on other nodes or before a restart, since
 * an idle node should ask the storage little. However late the expirer is, no
 * task starts after its deadline: claims skip it.
 */

import type { Log } from "../../log/log.ts";
import type { Storage } from "../../storage/storage.ts";
import type { Task } from "../../tasks/task.ts";
import { Alarm } from "../../time/alarm.ts";
import { SingleFlight } from "../../time/single-flight.ts";

/**
 * Tasks failed at once because their time to start has passed: bounds how long the database is
 * busy with it.
 */
const MAX_EXPIRED_TASKS = 500;

interface ExpirerOptions {
  readonly storage: Pick<Storage, "expireTasks">;
  readonly log: Log;
  readonly now: () => number;
  /** These tasks have failed. */
  onExpired(tasks: readonly Task[]): void;
}

export class Expirer implements AsyncDisposable {
  readonly #options: ExpirerOptions;
  readonly #alarm: Alarm;
  readonly #flight = new SingleFlight(() => this.#expireAll());
  #stopped = false;

  constructor(options: ExpirerOptions) {
    this.#options = options;
    this.#alarm = new Alarm(() => void this.look(), options.now);
  }

  /** A task was stored that has to start by this time (milliseconds since 1970). */
  expect(startByMs: number): void {
    this.#alarm.set(startByMs);
  }

  /** Fails the tasks whose deadline has passed. Never rejects. */
  look(): Promise<void> {
    return this.#flight.run();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped = true;
    this.#alarm[Symbol.dispose]();
    await this.#flight[Symbol.asyncDispose]();
  }

  async #expireAll(): Promise<void> {
    const { storage, log, now, onExpired } = this.#options;
    let found: number = MAX_EXPIRED_TASKS;
    try {
      while (found === MAX_EXPIRED_TASKS && !this.#stopped) {
        const tasks = await storage.expireTasks({ nowMs: now(), limit: MAX_EXPIRED_TASKS });
        onExpired(tasks);
        found = tasks.length;
      }
    } catch (err) {
      log.error({ err }, "tasks whose deadline passed could not be failed");
    }
  }
}
