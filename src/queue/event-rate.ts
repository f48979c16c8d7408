/**
 * The rate limit of an attempt's event log. The first 1,000 events pass; after
 * them, progress passes once every 10 s, so that a day of it is some thousand
 * rows. Log lines pass until there are 10,000 events; the worker limits them too.
 */

/**
 * Events of an attempt after which its progress is logged less often, so that a day of it is
 * some thousand rows.
 */
const MAX_FAST_EVENTS = 1_000;
/**
 * Log lines and progress kept in the event log of an attempt; the worker bounds its log lines
 * too.
 */
const MAX_ATTEMPT_EVENTS = 10_000;
/** Least time between two logged reports of progress after the first events. */
const SLOW_PROGRESS_INTERVAL_MS = 10_000;

export class EventRateLimit {
  #events = 0;
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

  /** True when a log line is stored. */
  admitLog(): boolean {
    this.#events += 1;
    return this.#events <= MAX_ATTEMPT_EVENTS;
  }
}
