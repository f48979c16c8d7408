/**
 * What other nodes may have done to the tasks of this one without a hint of it
 * that came: they asked for aborts, and changed tasks that callers wait for
 * here. All that wait are many, and each reads its task anew: they are told a
 * few at a time, so that the storage has room for other questions between.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "../log/log.ts";
import type { Storage } from "../storage/storage.ts";
import { SingleFlight } from "../time/single-flight.ts";
import type { MaintainedQueue } from "./maintained-queue.ts";

/** Waited-for tasks that are read at once: 5,000 a second, so that a round is enough for 25,000. */
const TOLD_AT_ONCE = 100;
const PAUSE_MS = 20;

export interface RemoteChangesOptions {
  readonly storage: Pick<Storage, "listAborts">;
  readonly log: Log;
  readonly queues: ReadonlyMap<string, MaintainedQueue>;
}

export class RemoteChanges implements AsyncDisposable {
  readonly #options: RemoteChangesOptions;
  readonly #aborts = new SingleFlight(() => this.#abort());
  readonly #waits = new SingleFlight(() => this.#tell());
  readonly #ended = new AbortController();

  constructor(options: RemoteChangesOptions) {
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
    const { storage, log, queues } = this.#options;
    const leaseIds = [...queues.values()].flatMap((each) => each.leaseIds());
    if (leaseIds.length === 0) {
      return;
    }
    try {
      for (const { deploymentId, taskId } of await storage.listAborts({ leaseIds })) {
        queues.get(deploymentId)?.abort(taskId);
      }
    } catch (err) {
      log.error({ err }, "aborts that other nodes asked for could not be looked for");
    }
  }

  async #tell(): Promise<void> {
    const { signal } = this.#ended;
    let told = 0;
    for (const queue of [...this.#options.queues.values()]) {
      for (const taskId of queue.awaited()) {
        if (told === TOLD_AT_ONCE) {
          told = 0;
          await sleep(PAUSE_MS, undefined, { signal }).catch(() => {
            // The node ends.
          });
        }
        if (signal.aborted) {
          return;
        }
        queue.onMissed(taskId);
        told += 1;
      }
    }
  }
}
