/**
 * The other nodes on the same database, for one deployment. They hear of what happened here by
 * hints, and this node follows theirs. Hints only make things quick. Correctness comes from polling:
 * each node's maintenance looks by itself.
 *
 * A node with workers of the deployment claims at once what another one has queued. A node without
 * would have to start one, and every such node would start one for the same task. So it leaves the
 * task to the node that accepted it, and checks after 3 s whether the task still waits.
 */
import type { Pool } from "../pool/pool.ts";
import type { EndpointManifest } from "../protocol/manifest.ts";
import type { Hint, Notifier } from "../storage/notifier.ts";
import type { Storage } from "../storage/storage.ts";
import type { Task } from "../tasks/task.ts";
import type { Tasks } from "./tasks.ts";
import type { Changed } from "./waits/changes.ts";

/**
 * How long a node without workers leaves a task to the node that took it: enough for a worker
 * to start and to take it; a node that died then costs a caller no more.
 */
const REMOTE_HINT_DELAY_MS = 3_000;

interface PeersOptions {
  readonly deploymentId: string;
  readonly storage: Pick<Storage, "requestAbort">;
  /** Undefined where there is one node only. */
  readonly notifier: Notifier | undefined;
  readonly pool: Pick<Pool, "size">;
  /** What remembers tasks that ended here: another node may have deleted one. */
  readonly tasks: Pick<Tasks, "forget" | "forgetAll">;
  /** Tasks of this endpoint may be waiting, of these keys or of any, and are for this node. */
  onQueued(endpoint: string, keys: readonly string[] | undefined): void;
  /** Hints of other nodes were lost. */
  onLost(): void;
  /** Another node may have changed this task. */
  onChanged(changed: Changed): void;
  /** This task is to be aborted if it runs here. */
  onAbort(taskId: string): void;
}

export class Peers implements Disposable {
  readonly #options: PeersOptions;
  readonly #left = new Map<string, NodeJS.Timeout>();
  readonly #unsubscribe: (() => void) | undefined;

  constructor(options: PeersOptions) {
    this.#options = options;
    this.#unsubscribe = options.notifier?.subscribe((hint) => this.#follow(hint));
  }

  /** A task of this endpoint has ended: another one of its key may wait for that, also elsewhere. */
  freed(endpoint: EndpointManifest | undefined, { key = "" }: Pick<Task, "key">): void {
    if (endpoint?.byKey?.concurrency !== undefined) {
      const { deploymentId, notifier, onQueued } = this.#options;
      notifier?.publish({ kind: "queued", deploymentId, endpoint: endpoint.name, keys: [key] });
      onQueued(endpoint.name, [key]);
    }
  }

  /** Tasks of this endpoint wait, and the node that accepted them may claim them. */
  queued(endpoint: string, keys?: readonly string[]): void {
    const { notifier, pool, onQueued } = this.#options;
    if (notifier === undefined || pool.size > 0) {
      onQueued(endpoint, keys);
    } else if (!this.#left.has(endpoint)) {
      const timer = setTimeout(() => {
        this.#left.delete(endpoint);
        onQueued(endpoint, undefined);
      }, REMOTE_HINT_DELAY_MS);
      this.#left.set(endpoint, timer.unref());
    }
  }

  /** Asks the node that runs this task to abort it. */
  async requestAbort(taskId: string): Promise<void> {
    const { deploymentId, storage, notifier } = this.#options;
    if (notifier) {
      await storage.requestAbort({ deploymentId, taskId });
      notifier.publish({ kind: "abort", taskId });
    }
  }

  [Symbol.dispose](): void {
    this.#unsubscribe?.();
    for (const timer of this.#left.values()) {
      clearTimeout(timer);
    }
    this.#left.clear();
  }

  #follow(hint: Hint): void {
    const { deploymentId, tasks, onChanged, onAbort, onLost } = this.#options;
    switch (hint.kind) {
      case "queued":
        if (hint.deploymentId === deploymentId) {
          this.queued(hint.endpoint, hint.keys);
        }
        break;
      case "changed":
        tasks.forget(hint.taskId);
        onChanged(hint);
        break;
      case "abort":
        onAbort(hint.taskId);
        break;
      case "look":
        // Some were lost.
        tasks.forgetAll();
        onLost();
        break;
    }
  }
}
