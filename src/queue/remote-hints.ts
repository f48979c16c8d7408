/**
 * Remote hints: reacts to tasks that other nodes queued. A node with workers of
 * the deployment claims at once. A node without would have to start one, and
 * every such node would start one for the same task. So it leaves the task to
 * the node that accepted it, and checks after 3 s whether the task still waits.
 */

import type { Pool } from "../pool/pool.ts";
import type { Dispatcher } from "./dispatcher.ts";

/**
 * How long a node without workers leaves a task to the node that took it: enough for a worker
 * to start and to take it; a node that died then costs a caller no more.
 */
const REMOTE_HINT_DELAY_MS = 3_000;

interface RemoteHintsOptions {
  readonly dispatcher: Pick<Dispatcher, "hint">;
  readonly pool: Pick<Pool, "size">;
  /** Other nodes can claim from the same storage. */
  readonly shared: boolean;
}

export class RemoteHints implements Disposable {
  readonly #options: RemoteHintsOptions;
  readonly #left = new Map<string, NodeJS.Timeout>();

  constructor(options: RemoteHintsOptions) {
    this.#options = options;
  }

  /** Tasks of this endpoint wait, and the node that accepted them may claim them. */
  hint(endpoint: string): void {
    const { dispatcher, pool, shared } = this.#options;
    if (!shared || pool.size > 0) {
      dispatcher.hint(endpoint);
    } else if (!this.#left.has(endpoint)) {
      const timer = setTimeout(() => {
        this.#left.delete(endpoint);
        dispatcher.hint(endpoint);
      }, REMOTE_HINT_DELAY_MS);
      this.#left.set(endpoint, timer.unref());
    }
  }

  [Symbol.dispose](): void {
    for (const timer of this.#left.values()) {
      clearTimeout(timer);
    }
    this.#left.clear();
  }
}
