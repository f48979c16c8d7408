/**
 * Remote changes: polls for what other nodes did to this node's tasks when their
 * hints got lost, namely requested aborts and changes to awaited tasks. Every
 * waiting caller reads its task again, so they are woken a few at a time, which
 * leaves the storage room for other queries in between.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "../../log/log.ts";
import type { Storage } from "../../storage/storage.ts";
import { SingleFlight } from "../../time/single-flight.ts";
import type { MaintainedQueue } from "./maintained-queue.ts";

/**
 * Waited-for tasks read at once: with the pause, 5,000 a second, so that one interval of
 * maintenance is enough for 25,000.
 */
const MAX_REMOTE_CHANGES_PER_READ = 100;
/** Pause between two reads of awaited tasks. */
const REMOTE_CHANGES_PAUSE_MS = 20;

interface RemoteChangesOptions {
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

  /** Resolves when all aborts and all waiting callers were handled. Never rejects. */
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
    let woken = 0;
    for (const queue of [...this.#options.queues.values()]) {
      for (const taskId of queue.awaited()) {
        if (woken === MAX_REMOTE_CHANGES_PER_READ) {
          woken = 0;
          await sleep(REMOTE_CHANGES_PAUSE_MS, undefined, { signal }).catch(() => {
            // The node ends.
          });
        }
        if (signal.aborted) {
          return;
        }
        queue.onMissed(taskId);
        woken += 1;
      }
    }
  }
}
