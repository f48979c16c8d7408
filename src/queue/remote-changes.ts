/**
 * What other nodes may have done to the tasks of this one without a hint of it
 * that came: they asked for aborts, and changed tasks that callers wait for
 * here. All that wait are many, and each reads its task anew: they are told a
 * few at a time, so that the storage has room for other questions between.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "../log/log.ts";
import type { Storage } from "../storage/storage.ts";
import { Errand } from "../time/single-flight.ts";
import type { Visited } from "./maintained-queue.ts";

/** Waited-for tasks that are read at once: 5,000 a second, so that a round is enough for 25,000. */
const TOLD_AT_ONCE = 100;
const PAUSE_MS = 20;

export interface ElsewhereOptions {
  readonly storage: Pick<Storage, "listAborts">;
  readonly log: Log;
  readonly visited: ReadonlyMap<string, Visited>;
}

export class Elsewhere implements AsyncDisposable {
  readonly #options: ElsewhereOptions;
  readonly #aborts = new Errand(() => this.#abort());
  readonly #waits = new Errand(() => this.#tell());
  readonly #ended = new AbortController();

  constructor(options: ElsewhereOptions) {
    this.#options = options;
  }

  /** Returns when all have been told. Never rejects. */
  async look(): Promise<void> {
    await this.#aborts.run();
    await this.#waits.run();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort();
    await this.#aborts[Symbol.asyncDispose]();
    await this.#waits[Symbol.asyncDispose]();
  }

  async #abort(): Promise<void> {
    const { storage, log, visited } = this.#options;
    const leaseIds = [...visited.values()].flatMap((each) => each.leaseIds());
    if (leaseIds.length === 0) {
      return;
    }
    try {
      for (const { deploymentId, taskId } of await storage.listAborts({ leaseIds })) {
        visited.get(deploymentId)?.abort(taskId);
      }
    } catch (err) {
      log.error({ err }, "aborts that other nodes asked for could not be looked for");
    }
  }

  async #tell(): Promise<void> {
    const { signal } = this.#ended;
    let told = 0;
    for (const visited of [...this.#options.visited.values()]) {
      for (const taskId of visited.awaited()) {
        if (told === TOLD_AT_ONCE) {
          told = 0;
          await sleep(PAUSE_MS, undefined, { signal }).catch(() => {
            // The node ends.
          });
        }
        if (signal.aborted) {
          return;
        }
        visited.onMissed(taskId);
        told += 1;
      }
    }
  }
}
