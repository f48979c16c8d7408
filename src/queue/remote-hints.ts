/**
 * Queued tasks that this node has only heard of. Where it has workers of the
 * deployment, it looks for them at once. Where it has none, one would have to
 * be started, and every other node would do the same for the same task: so it
 * leaves the task to the node that took it, and looks only after a while
 * whether it still waits.
 */

import type { Pool } from "../pool/pool.ts";
import type { Dispatcher } from "./dispatcher.ts";

/** Enough for a worker to start and to take the task; a node that died then costs a caller no more. */
const LEFT_MS = 3_000;

export interface RemoteHintsOptions {
  readonly dispatcher: Pick<Dispatcher, "hint">;
  readonly pool: Pick<Pool, "size">;
  /** Other nodes may take them too. */
  readonly shared: boolean;
}

export class RemoteHints implements Disposable {
  readonly #options: RemoteHintsOptions;
  readonly #left = new Map<string, NodeJS.Timeout>();

  constructor(options: RemoteHintsOptions) {
    this.#options = options;
  }

  /** Tasks of this endpoint wait that another node may have taken. */
  hint(endpoint: string): void {
    const { dispatcher, pool, shared } = this.#options;
    if (!shared || pool.size > 0) {
      dispatcher.hint(endpoint);
    } else if (!this.#left.has(endpoint)) {
      const timer = setTimeout(() => {
        this.#left.delete(endpoint);
        dispatcher.hint(endpoint);
      }, LEFT_MS);
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
