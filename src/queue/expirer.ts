/**
 * Fails the tasks that were not started before their deadline.
 *
 * For deadlines that were set on this node an alarm rings, so they are told
 * at once. Those set on other nodes, or before a restart, are found by a
 * timer every five seconds, because an idle node should ask little. However late a deadline is noticed, no task is started
 * after it: claims pass those tasks by.
 */
import type { Storage } from "../storage/storage.ts";
import type { Task } from "../tasks/task.ts";
import { Alarm } from "./alarm.ts";
import type { Log } from "./log.ts";
import { Timer } from "./timer.ts";

const FLOOR_MS = 5_000;

/** Tasks failed at once: bounds how long the database is busy with it. */
const LIMIT = 500;

export interface ExpirerOptions {
  readonly storage: Storage;
  readonly log: Log;
  readonly now: () => number;
  /** These tasks have failed. */
  onExpired(tasks: readonly Task[]): void;
}

export class Expirer implements AsyncDisposable {
  readonly #options: ExpirerOptions;
  readonly #alarm: Alarm;
  #floor: Timer | undefined;
  #round: Promise<void> | undefined;
  #again = false;
  #stopped = false;

  constructor(options: ExpirerOptions) {
    this.#options = options;
    this.#alarm = new Alarm(() => this.#wake(), options.now);
  }

  /** Looks for what has passed already, and from then on by timer. */
  start(): void {
    this.#floor ??= new Timer(
      FLOOR_MS,
      () => this.#wake(),
      (err) => this.#options.log.error({ err }, "the round for passed deadlines failed"),
    );
    void this.#wake();
  }

  /** A task was stored that has to start by then. */
  expect(startByMs: number): void {
    this.#alarm.set(startByMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped = true;
    this.#alarm[Symbol.dispose]();
    await this.#floor?.[Symbol.asyncDispose]();
    await this.#round;
  }

  /** One round at a time; a ring during a round is followed by another. */
  #wake(): Promise<void> {
    if (this.#round) {
      this.#again = true;
      return this.#round;
    }
    this.#round = this.#expire()
      .catch((err: unknown) =>
        this.#options.log.error({ err }, "tasks whose deadline passed could not be failed"),
      )
      .finally(() => {
        this.#round = undefined;
        if (this.#again && !this.#stopped) {
          this.#again = false;
          void this.#wake();
        }
      });
    return this.#round;
  }

  async #expire(): Promise<void> {
    const { storage, now, onExpired } = this.#options;
    let found: number = LIMIT;
    while (found === LIMIT && !this.#stopped) {
      const tasks = await storage.expireTasks({ nowMs: now(), limit: LIMIT });
      onExpired(tasks);
      found = tasks.length;
    }
  }
}
