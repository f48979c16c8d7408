/**
 * How much of what a function reports goes into the event log of its attempt.
 * Progress is told often at first and less often the longer it goes on, so
 * that a day of it is some thousand rows; log lines are bounded by the worker,
 * and here once more.
 */
const FAST_EVENTS = 1_000;
const MAX_EVENTS = 10_000;
const SLOW_PROGRESS_MS = 10_000;

export class EventRateLimit {
  #events = 0;
  #lastProgressMs = Number.NEGATIVE_INFINITY;

  /** True when this progress (from 0 to 1) is to be kept; the end of it always is. */
  admitProgress(fraction: number, nowMs: number): boolean {
    const slow = this.#events >= FAST_EVENTS && fraction < 1;
    if (slow && nowMs - this.#lastProgressMs < SLOW_PROGRESS_MS) {
      return false;
    }
    this.#lastProgressMs = nowMs;
    this.#events += 1;
    return true;
  }

  admitLog(): boolean {
    this.#events += 1;
    return this.#events <= MAX_EVENTS;
  }
}
