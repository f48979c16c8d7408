/**
 * The rate limit of an attempt's event log. The first 1,000 events pass; after them, progress
 * passes once every 10 s, so that a day of it is some thousand rows. Log lines always pass: the
 * worker bounds how many come, and the storage how many are kept.
 */

/**
 * Events of an attempt after which its progress is logged less often, so that a day of it is
 * some thousand rows.
 */
const MAX_FAST_EVENTS = 1_000;
/** Least time between two logged reports of progress after the first events. */
const SLOW_PROGRESS_INTERVAL_MS = 10_000;

export class EventRateLimit {
  #events = 0;
  #lines = 0;
  #lastProgressMs = Number.NEGATIVE_INFINITY;

  /** True when this progress (from 0 to 1) is stored. Progress of 1 always is. */
  admitProgress(fraction: number, nowMs: number): boolean {
    const slow = this.#events >= MAX_FAST_EVENTS && fraction < 1;
    if (slow && nowMs - this.#lastProgressMs < SLOW_PROGRESS_INTERVAL_MS) {
      return false;
    }
    this.#lastProgressMs = nowMs;
    this.#events += 1;
    return true;
  }

  /** The number of the next log line, from 1. */
  nextLine(): number {
    this.#events += 1;
    this.#lines += 1;
    return this.#lines;
  }
}
