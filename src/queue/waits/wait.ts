/** Long polling: lets a caller wait until a task has changed, in one object per wait. */
import { SmallSet } from "../../collections/small-set.ts";
import { shuttingDown } from "../../errors.ts";
import type { Task } from "../../tasks/task.ts";
import type { ChangeListener, Changes } from "./changes.ts";

export interface WaitForOptions {
  readonly changes: Changes;
  readonly taskId: string;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
  /** Reads the task; a promise only where it is not in memory. */
  readonly read: () => Task | Promise<Task>;
  /** The caller waits for the end, so that other changes need not be looked at. */
  readonly endsOnly?: boolean;
  /** True when the task has reached the state that the caller waits for. */
  readonly enough: (task: Task) => boolean;
}

/**
 * Resolves with the task as soon as it is `enough`; when the time is over or the
 * caller has gone, with the task as it then is. It subscribes before it reads,
 * so it misses no change. Rejects with TOO_MANY_WAITING, and with the shutdown
 * problem when the node stops.
 */
export function waitFor(options: WaitForOptions): Promise<Task> {
  return new Promise((resolve, reject) => new Wait(options, resolve, reject).begin());
}

/** One wait. One object is all its listeners, because there are as many waits as callers. */
class Wait implements ChangeListener, AbortListener {
  readonly #options: WaitForOptions;
  readonly #resolve: (task: Task) => void;
  readonly #reject: (err: unknown) => void;
  readonly deadlineMs: number;
  readonly endsOnly: boolean;
  #unlisten: (() => void) | undefined;
  #listeners: SmallSet<AbortListener> | undefined;

  constructor(
    options: WaitForOptions,
    resolve: (task: Task) => void,
    reject: (err: unknown) => void,
  ) {
    this.#options = options;
    this.#resolve = resolve;
    this.#reject = reject;
    this.deadlineMs = performance.now() + options.waitMs;
    this.endsOnly = options.endsOnly ?? false;
  }

  begin(): void {
    const { changes, taskId, signal } = this.#options;
    try {
      this.#unlisten = changes.listen(taskId, this);
    } catch (err) {
      this.#fail(err);
      return;
    }
    if (signal?.aborted) {
      this.#giveUp();
      return;
    }
    this.#listeners = signal && abortListenersOf(signal);
    this.#listeners?.add(this);
    this.#read((task) => this.#look(task));
  }

  onChange(task: Task | undefined): void {
    if (task) {
      this.#look(task);
    } else {
      this.#read((now) => this.#look(now));
    }
  }

  onClose(): void {
    this.#fail(shuttingDown());
  }

  onDeadline(): void {
    this.#giveUp();
  }

  onGone(): void {
    this.#giveUp();
  }

  #look(task: Task): void {
    if (this.#options.enough(task)) {
      this.#end();
      this.#resolve(task);
    }
  }

  #giveUp(): void {
    this.#end();
    this.#read(this.#resolve);
  }

  #fail(err: unknown): void {
    this.#end();
    this.#reject(err);
  }

  /** Reads the task and passes it on, synchronously where `read` answers so. */
  #read(take: (task: Task) => void): void {
    const task = this.#options.read();
    if (task instanceof Promise) {
      task.then(take, (err: unknown) => this.#fail(err));
    } else {
      take(task);
    }
  }

  #end(): void {
    this.#unlisten?.();
    this.#listeners?.delete(this);
  }
}

// A fan-out of abort signals: one listener per signal tells every wait that its
// caller has gone. A signal belongs to a connection and outlives many calls
// (`server/http/disconnect.ts`). Adding and removing a listener on it for each
// call would cost more than the rest of a wait.

/** Gets a call when the signal aborts. */
interface AbortListener {
  onGone(): void;
}

const bySignal = new WeakMap<AbortSignal, SmallSet<AbortListener>>();

/** The signal's listeners, to add oneself to and delete oneself from. It must not have aborted yet. */
function abortListenersOf(signal: AbortSignal): SmallSet<AbortListener> {
  const known = bySignal.get(signal);
  if (known) {
    return known;
  }
  const listeners = new SmallSet<AbortListener>();
  bySignal.set(signal, listeners);
  signal.addEventListener("abort", () => listeners.each((listener) => listener.onGone()), {
    once: true,
  });
  return listeners;
}
