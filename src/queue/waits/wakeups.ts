/** The wake-ups of one reader that follows a task: changes, the end of the node, its own leaving. */
import type { Changes } from "./changes.ts";

export class Wakeups implements Disposable {
  readonly #unlisten: () => void;
  readonly #signal: AbortSignal | undefined;
  #changed = Promise.withResolvers<void>();
  #closed = false;
  readonly #wake = (): void => this.#changed.resolve();

  /** Throws TOO_MANY_WAITING when there is no room for another listener. */
  constructor(changes: Changes, taskId: string, signal: AbortSignal | undefined) {
    this.#unlisten = changes.listen(taskId, {
      onChange: this.#wake,
      onClose: () => {
        this.#closed = true;
        this.#wake();
      },
    });
    this.#signal = signal;
    signal?.addEventListener("abort", this.#wake);
  }

  /** The node is shutting down: no more changes will come. */
  get isClosed(): boolean {
    return this.#closed;
  }

  /** Call it before a read: resolves with the next change from now on. */
  next(): Promise<void> {
    this.#changed = Promise.withResolvers();
    return this.#changed.promise;
  }

  [Symbol.dispose](): void {
    this.#unlisten();
    this.#signal?.removeEventListener("abort", this.#wake);
  }
}
