/** Times closer together than this share one ring. */
const GRAIN_MS = 50;

/** Times remembered; whoever needs more has a poll as the floor. */
const MAX_TIMES = 10_000;

/** Node's timers count in 31 bits: a longer wait is taken in parts. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Rings at the times it was set for, at most 50 ms later, so that what falls
 * due at a known time need not be polled for. It knows only what this node
 * has told it, and forgets all of it with the process: a ring is a hint, and
 * a slow poll the floor.
 */
export class Alarm implements Disposable {
  readonly #ring: () => void;
  readonly #now: () => number;
  readonly #times = new Set<number>();
  #nextMs = Number.POSITIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(ring: () => void, now: () => number) {
    this.#ring = ring;
    this.#now = now;
  }

  /** Rings at this time too (milliseconds since 1970), or at once when it has passed. */
  set(timeMs: number): void {
    const roundedMs = Math.ceil(timeMs / GRAIN_MS) * GRAIN_MS;
    if (this.#times.size < MAX_TIMES || roundedMs < this.#nextMs) {
      this.#times.add(roundedMs);
    }
    if (roundedMs < this.#nextMs) {
      this.#schedule(roundedMs);
    }
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#times.clear();
  }

  #schedule(nextMs: number): void {
    this.#nextMs = nextMs;
    clearTimeout(this.#timer);
    if (nextMs !== Number.POSITIVE_INFINITY) {
      const waitMs = Math.min(Math.max(nextMs - this.#now(), 0), MAX_TIMER_MS);
      this.#timer = setTimeout(() => this.#wake(), waitMs).unref();
    }
  }

  #wake(): void {
    const nowMs = this.#now();
    let due = false;
    let nextMs = Number.POSITIVE_INFINITY;
    for (const timeMs of this.#times) {
      if (timeMs <= nowMs) {
        this.#times.delete(timeMs);
        due = true;
      } else {
        nextMs = Math.min(nextMs, timeMs);
      }
    }
    this.#schedule(nextMs);
    if (due) {
      this.#ring();
    }
  }
}
