/**
 * An in-process publish/subscribe of task changes. Waiting callers and watchers
 * subscribe to one task. The number of subscribers is bounded.
 */
import { SlotMap } from "../../collections/slots.ts";
import { SmallSet } from "../../collections/small-set.ts";
import { problem } from "../../errors.ts";
import { isFinal, type Task } from "../../tasks/task.ts";
import { Deadlines } from "../../time/deadlines.ts";

/** A task that changed; `live`: it has not ended. */
export interface Changed {
  readonly taskId: string;
  readonly live?: true;
}

export interface ChangeListener {
  /** It hears of the end of the task alone. Default: of every change. */
  readonly endsOnly?: boolean;
  /** The task changed. `task` is undefined when the publisher did not have it at hand. */
  onChange(task: Task | undefined): void;
  /** The node is shutting down: no more changes will come. */
  onClose(): void;
  /** When `onDeadline` is due, by `performance.now()`. Default: never. */
  readonly deadlineMs?: number;
  /** The deadline has passed. The listener stays subscribed until it unsubscribes. */
  onDeadline?(): void;
}

/**
 * Listeners by task. A change is a hint to read the task; the storage holds the
 * truth. Listeners get the task with the hint when its publisher has it at hand.
 */
export class Changes {
  readonly #listeners = new SlotMap<string, SmallSet<ChangeListener>>();
  readonly #deadlines = new Deadlines((nowMs) => this.#reach(nowMs));
  readonly #limit: number;
  readonly #announce: ((changed: Changed) => void) | undefined;
  #count = 0;

  /**
   * `limit`: listeners at a time. Each costs memory and, most often, a connection. `announce` tells
   * other nodes of a change. Default: no other node is told.
   */
  constructor(limit: number, announce?: (changed: Changed) => void) {
    this.#limit = limit;
    this.#announce = announce;
  }

  /** This node changed a task: tells local listeners and other nodes. */
  publish(taskId: string, task?: Task): void {
    const isLive = task !== undefined && !isFinal(task.status);
    this.#announce?.(isLive ? { taskId, live: true } : { taskId });
    this.#tell(taskId, task, isLive);
  }

  /** Tells other nodes alone that this node has stored more of a task that runs. */
  announceMore(taskId: string): void {
    this.#announce?.({ taskId, live: true });
  }

  /** Tells local listeners alone: another node may have changed a task, or is told later. */
  hear({ taskId, live }: Changed): void {
    this.#tell(taskId, undefined, live === true);
  }

  /** The tasks that have listeners. */
  get awaited(): readonly string[] {
    return [...this.#listeners.keys()];
  }

  /** Tells all listeners that no more changes will come. */
  close(): void {
    for (const listeners of this.#listeners.values()) {
      listeners.each((listener) => listener.onClose());
    }
    this.#deadlines.clear();
  }

  /** Subscribes to a task; the returned function unsubscribes. Throws TOO_MANY_WAITING at the limit. */
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

  #tell(taskId: string, task: Task | undefined, isLive: boolean): void {
    this.#listeners.get(taskId)?.each((listener) => {
      if (!isLive || !listener.endsOnly) {
        listener.onChange(task);
      }
    });
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

/** The wake-ups of one reader that follows a task: changes, the end of the node, its own leaving. */
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
