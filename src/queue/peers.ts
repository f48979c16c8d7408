/**
 * Hints between the nodes on one database, for one deployment: publishes what
 * happened here and follows the hints of other nodes. Hints only make things
 * quick. Correctness comes from polling: each node's maintenance looks by
 * itself.
 */

import type { Hint, Notifier } from "../storage/notifier.ts";
import type { Storage } from "../storage/storage.ts";
import type { Attempts } from "./attempts.ts";
import type { Dispatcher } from "./dispatcher.ts";
import type { RemoteHints } from "./remote-hints.ts";
import type { Changes } from "./waits/changes.ts";

interface PeersOptions {
  readonly deploymentId: string;
  readonly storage: Storage;
  readonly notifier: Notifier;
  readonly attempts: Attempts;
  readonly changes: Changes;
  readonly dispatcher: Dispatcher;
  readonly remoteHints: RemoteHints;
}

export class Peers implements Disposable {
  readonly #options: PeersOptions;
  readonly #unsubscribe: () => void;

  constructor(options: PeersOptions) {
    const { deploymentId, notifier, changes, dispatcher } = options;
    this.#options = options;
    this.#unsubscribe = notifier.subscribe((hint) => this.#follow(hint));
    changes.announceTo((taskId) => notifier.publish({ kind: "changed", taskId }));
    dispatcher.announceTo((endpoint) =>
      notifier.publish({ kind: "queued", deploymentId, endpoint }),
    );
  }

  /** Asks the node that runs this task to abort it. */
  async requestAbort(taskId: string): Promise<void> {
    const { deploymentId, storage, notifier } = this.#options;
    await storage.requestAbort({ deploymentId, taskId });
    notifier.publish({ kind: "abort", taskId });
  }

  [Symbol.dispose](): void {
    this.#unsubscribe();
  }

  #follow(hint: Hint): void {
    const { deploymentId, attempts, changes, remoteHints } = this.#options;
    switch (hint.kind) {
      case "queued":
        if (hint.deploymentId === deploymentId) {
          remoteHints.hint(hint.endpoint);
        }
        break;
      case "changed":
        changes.hear(hint.taskId);
        break;
      case "abort":
        attempts.abort(hint.taskId);
        break;
    }
  }
}
