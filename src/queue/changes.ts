import { SlotMap } from "../collections/slots.ts";
import { SmallSet } from "../collections/small-set.ts";
import { problem } from "../errors.ts";
import type { Task } from "../tasks/task.ts";
import { Deadlines } from "../time/deadlines.ts";

export interface ChangeListener {
  /** The task changed; it is given when it was at hand. */
  onChange(task: Task | undefined): void;
  /** The node is shutting down: no change will be told any more. */
  onClose(): void;
  /** Until when it listens, by `performance.now()`. Default: until it stops. */
  readonly deadlineMs?: number;
  /** The deadline has been reached. */
  onDeadline?(): void;
}

/**
 * Who waits for which task, in this process. A change is a hint to look, not
 * the news itself: the truth is in the storage. Listeners get the task with
 * it when the one who made the change has it at hand.
 */
export class Changes {
  readonly #listeners = new SlotMap<string, SmallSet<ChangeListener>>();
  readonly #deadlines = new Deadlines((nowMs) => this.#reach(nowMs));
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
    for (const listeners of this.#listeners.values()) {
      listeners.each((listener) => listener.onClose());
    }
    this.#deadlines.clear();
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
    let listeners = this.#listeners.get(taskId);
    if (listeners === undefined) {
      listeners = new SmallSet();
      this.#listeners.set(taskId, listeners);
    }
    listeners.add(listener);
    if (listener.deadlineMs !== undefined) {
      this.#deadlines.expect(listener.deadlineMs);
    }
    return () => {
      if (listeners.delete(listener)) {
        this.#count -= 1;
        if (listeners.size === 0) {
          this.#listeners.take(taskId);
        }
      }
    };
  }

  #tell(taskId: string, task: Task | undefined): void {
    this.#listeners.get(taskId)?.each((listener) => listener.onChange(task));
  }

  #reach(nowMs: number): number {
    let nextMs = Number.POSITIVE_INFINITY;
    for (const listeners of this.#listeners.values()) {
      listeners.each((listener) => {
        const { deadlineMs = Number.POSITIVE_INFINITY } = listener;
        if (deadlineMs <= nowMs) {
          listener.onDeadline?.();
        } else {
          nextMs = Math.min(nextMs, deadlineMs);
        }
      });
    }
    return nextMs;
  }
}
