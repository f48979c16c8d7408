import { problem } from "../errors.ts";
import type { Task } from "../tasks/task.ts";

export interface ChangeListener {
  /** The task changed; it is given when it was at hand. */
  onChange(task: Task | undefined): void;
  /** The node is shutting down: no change will be told any more. */
  onClose(): void;
}

/**
 * Who waits for which task, in this process. A change is a hint to look, not
 * the news itself: the truth is in the storage. Listeners get the task with
 * it when the one who made the change has it at hand.
 */
export class Changes {
  readonly #listeners = new Map<string, Set<ChangeListener>>();
  readonly #limit: number;
  #count = 0;
  #announce: ((taskId: string) => void) | undefined;

  /** `limit`: how many may listen at a time; each costs memory and, most often, a connection. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** A task was changed by this node. */
  publish(taskId: string, task?: Task): void {
    this.#announce?.(taskId);
    this.#tell(taskId, task);
  }

  /** A task may have been changed by another node. */
  hear(taskId: string): void {
    this.#tell(taskId, undefined);
  }

  /** The tasks that anyone listens for. */
  get awaited(): readonly string[] {
    return [...this.#listeners.keys()];
  }

  /** From now on, tells other nodes too of what this one changes. */
  announceTo(announce: (taskId: string) => void): void {
    this.#announce = announce;
  }

  /** Tells all who listen that there is nothing more to wait for. */
  close(): void {
    for (const listener of [...this.#listeners.values()].flatMap((each) => [...each])) {
      listener.onClose();
    }
  }

  /** Begins listening; the returned function ends it. */
  listen(taskId: string, listener: ChangeListener): () => void {
    if (this.#count >= this.#limit) {
      throw problem(
        "TOO_MANY_WAITING",
        `${this.#count} callers are already waiting for tasks, which is the limit: ask again without wait, or later`,
        { retryAfterMs: 1_000 },
      );
    }
    this.#count += 1;
    const listeners = this.#listeners.get(taskId) ?? new Set();
    this.#listeners.set(taskId, listeners.add(listener));
    return () => {
      if (listeners.delete(listener)) {
        this.#count -= 1;
        if (listeners.size === 0) {
          this.#listeners.delete(taskId);
        }
      }
    };
  }

  #tell(taskId: string, task: Task | undefined): void {
    for (const listener of this.#listeners.get(taskId) ?? []) {
      listener.onChange(task);
    }
  }
}
