/**
 * A semaphore for starting workers: bounds how many start on a node at a time.
 * Loading a service takes a processor. If all deployments of a node started at
 * once, none would be ready before nearly all are, and some would time out. So
 * they start a few at a time, first those that callers wait for.
 *
 * A worker that takes longer than 10 s to start waits for something rather than
 * computes, and gives up its place: one deployment that hangs does not delay the
 * others.
 */

/** Gives the place back; call it when the worker is ready or has failed. */
export type Leave = () => void;

/** Wants to start a worker as soon as there is room. */
export interface Starter {
  /** True when a caller waits for the worker. */
  isUrgent(): boolean;
  /** There is room; call `tryEnter` again. */
  again(): void;
}

/**
 * How long a starting worker counts for the number of starts at a time: one that takes longer
 * waits rather than computes.
 */
const START_SLOT_MS = 10_000;

export class StartGate {
  readonly #waiting = new Set<Starter>();
  readonly #longMs: number;
  #free: number;

  /** `atATime` may be infinite. */
  constructor(atATime: number, { longMs = START_SLOT_MS }: { readonly longMs?: number } = {}) {
    this.#free = atATime;
    this.#longMs = longMs;
  }

  /** Takes a place for one worker. Without room, returns undefined and calls `starter.again` later. */
  tryEnter(starter: Starter): Leave | undefined {
    if (this.#free < 1) {
      this.#waiting.add(starter);
      return undefined;
    }
    this.#free -= 1;
    let left = false;
    const leave = (): void => {
      if (!left) {
        left = true;
        clearTimeout(timer);
        this.#free += 1;
        this.#next();
      }
    };
    const timer = setTimeout(leave, this.#longMs).unref();
    return leave;
  }

  /** Waits for a place for one worker and takes it. Rejects with the signal's reason. */
  async enter(isUrgent: () => boolean, signal?: AbortSignal): Promise<Leave> {
    for (;;) {
      signal?.throwIfAborted();
      const { promise: room, resolve } = Promise.withResolvers<void>();
      const again = (): void => resolve();
      const starter = { isUrgent, again };
      const leave = this.tryEnter(starter);
      if (leave) {
        return leave;
      }
      signal?.addEventListener("abort", again, { once: true });
      await room;
      signal?.removeEventListener("abort", again);
      this.forget(starter);
    }
  }

  /** Removes a starter from the waiting ones. */
  forget(starter: Starter): void {
    this.#waiting.delete(starter);
  }

  #next(): void {
    const waiting = [...this.#waiting];
    const next = waiting.find((starter) => starter.isUrgent()) ?? waiting[0];
    if (next) {
      this.#waiting.delete(next);
      next.again();
      // The starter may not have taken the place; then the next one gets it.
      queueMicrotask(() => this.#free >= 1 && this.#next());
    }
  }
}
