/** An alarm clock: wakes its owner at times known in advance. */

/** Times closer together than this share one ring of an alarm. */
const ALARM_GRAIN_MS = 50;

/** Times that an alarm remembers; the owner's poll finds further ones. */
const MAX_ALARM_TIMES = 10_000;

/**
 * Longest wait of one timer, because Node's count in 31 bits (24.8 days): a longer one is
 * taken in parts, or is no limit at all.
 */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Rings at most 50 ms after each time it was set for, so that work due at a
 * known time needs no fast poll. It knows only the times that this process
 * set, and they end with the process: a ring is a hint, and a slow poll the
 * fallback.
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

  /** Adds a time (milliseconds since 1970); rings at once if it has passed. */
  set(timeMs: number): void {
    const roundedMs = Math.ceil(timeMs / ALARM_GRAIN_MS) * ALARM_GRAIN_MS;
    if (this.#times.size < MAX_ALARM_TIMES || roundedMs < this.#nextMs) {
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
