/**
 * The other nodes on the same database, for one deployment: tells them what
 * happened here, and does what their hints suggest. Hints make things quick;
 * what makes them happen at all is that everyone also looks by itself: the
 * dispatcher's poll for tasks, and here for changes and aborts.
 */
import type { Storage } from "../storage/storage.ts";
import type { Attempts } from "./attempts.ts";
import type { Changes } from "./changes.ts";
import type { Dispatcher } from "./dispatcher.ts";
import type { Log } from "./log.ts";
import type { Hint, Notifier } from "./notifier.ts";
import { Timer } from "./timer.ts";

/** How long a change or an abort can go unnoticed when its hint got lost. */
const LOOK_EVERY_MS = 5_000;

export interface PeersOptions {
  readonly deploymentId: string;
  readonly storage: Storage;
  readonly notifier: Notifier;
  readonly attempts: Attempts;
  readonly changes: Changes;
  readonly dispatcher: Dispatcher;
  readonly log: Log;
}

export class Peers implements AsyncDisposable {
  readonly #options: PeersOptions;
  readonly #unsubscribe: () => void;
  readonly #timer: Timer;

  constructor(options: PeersOptions) {
    const { deploymentId, notifier, changes, dispatcher, log } = options;
    this.#options = options;
    this.#unsubscribe = notifier.subscribe((hint) => this.#follow(hint));
    changes.announceTo((taskId) => notifier.publish({ kind: "changed", taskId }));
    dispatcher.announceTo((endpoint) =>
      notifier.publish({ kind: "queued", deploymentId, endpoint }),
    );
    this.#timer = new Timer(
      LOOK_EVERY_MS,
      () => this.#look(),
      (err) => log.error({ err }, "changes by other nodes could not be looked for"),
    );
  }

  /** Asks the node that runs this task to abort it. */
  async requestAbort(taskId: string): Promise<void> {
    const { deploymentId, storage, notifier } = this.#options;
    await storage.requestAbort({ deploymentId, taskId });
    notifier.publish({ kind: "abort", taskId });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#unsubscribe();
    await this.#timer[Symbol.asyncDispose]();
  }

  #follow(hint: Hint): void {
    const { deploymentId, attempts, changes, dispatcher } = this.#options;
    switch (hint.kind) {
      case "queued":
        if (hint.deploymentId === deploymentId) {
          dispatcher.hint(hint.endpoint);
        }
        break;
      case "changed":
        changes.hear(hint.taskId);
        break;
      case "abort":
        attempts.abort(hint.taskId);
        break;
      case "look":
        this.#look().catch((err: unknown) => {
          this.#options.log.error({ err }, "changes by other nodes could not be looked for");
        });
        break;
    }
  }

  /** Anything may have happened without a hint. */
  async #look(): Promise<void> {
    const { storage, attempts, changes, dispatcher } = this.#options;
    changes.hearAll();
    dispatcher.hintAll();
    const leaseIds = attempts.leaseIds();
    if (leaseIds.length > 0) {
      for (const { taskId } of await storage.listAborts({ leaseIds })) {
        attempts.abort(taskId);
      }
    }
  }
}
