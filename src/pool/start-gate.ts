/**
 * How many workers may be starting on a node at a time. Loading a service
 * takes a processor: where all the deployments of a node start at once, none
 * is ready before nearly all are, and some run out of their time. So they
 * start a few at a time, those that callers wait for first.
 *
 * A worker that is long in starting waits for something rather than computes,
 * and does not count any more: one deployment that hangs does not hold up the
 * others.
 */

/** Room that was taken; called when the worker is ready, or will never be. */
export type Leave = () => void;

/** Who wants to start a worker as soon as there is room. */
export interface Starter {
  /** Somebody waits for that worker. */
  isUrgent(): boolean;
  /** There is room now, for whoever takes it first. */
  again(): void;
}

const LONG_MS = 10_000;

export class StartGate {
  readonly #waiting = new Set<Starter>();
  readonly #longMs: number;
  #free: number;

  /** `atATime` may be infinite. */
  constructor(atATime: number, { longMs = LONG_MS }: { readonly longMs?: number } = {}) {
    this.#free = atATime;
    this.#longMs = longMs;
  }

  /** Room for one worker; undefined when there is none, and then `starter` is told when there is. */
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

  /** Resolves when there is room for one worker. Rejects with the signal's reason. */
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

  /** This one does not want to start anything any more. */
  forget(starter: Starter): void {
    this.#waiting.delete(starter);
  }

  #next(): void {
    const waiting = [...this.#waiting];
    const next = waiting.find((starter) => starter.isUrgent()) ?? waiting[0];
    if (next) {
      this.#waiting.delete(next);
      next.again();
      // It may not have wanted it any more.
      queueMicrotask(() => this.#free >= 1 && this.#next());
    }
  }
}
