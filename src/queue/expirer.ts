/**
 * Fails the tasks that were not started before their deadline, of all
 * deployments.
 *
 * For deadlines that were set on this node an alarm rings, so they are told
 * at once. Those set on other nodes, or before a restart, the rounds of the
 * node find, because an idle node should ask little. However late a deadline
 * is noticed, no task is started after it: claims pass those tasks by.
 */

import type { Log } from "../log/log.ts";
import type { Storage } from "../storage/storage.ts";
import type { Task } from "../tasks/task.ts";
import { Alarm } from "../time/alarm.ts";
import { SingleFlight } from "../time/single-flight.ts";

/** Tasks failed at once: bounds how long the database is busy with it. */
const LIMIT = 500;

export interface ExpirerOptions {
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

  /** A task was stored that has to start by then. */
  expect(startByMs: number): void {
    this.#alarm.set(startByMs);
  }

  /** Fails what has passed. Never rejects. */
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
    let found: number = LIMIT;
    try {
      while (found === LIMIT && !this.#stopped) {
        const tasks = await storage.expireTasks({ nowMs: now(), limit: LIMIT });
        onExpired(tasks);
        found = tasks.length;
      }
    } catch (err) {
      log.error({ err }, "tasks whose deadline passed could not be failed");
    }
  }
}
