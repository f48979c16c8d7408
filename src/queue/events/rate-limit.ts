/**
 * The rate limit of an attempt's event log. The first 1,000 events pass; after them, progress
 * passes once every 10 s, so that a day of it is some thousand rows. Log lines always pass, at the
 * rate of `protocol/log-rate.ts`, and displace those in the middle of a long log.
 */
import type { LineRange } from "../../tasks/event.ts";

/**
 * Events of an attempt after which its progress is logged less often, so that a day of it is
 * some thousand rows.
 */
const MAX_FAST_EVENTS = 1_000;
/** Least time between two logged reports of progress after the first events. */
const SLOW_PROGRESS_INTERVAL_MS = 10_000;

/** Lines of an attempt's log that are kept from its beginning. */
const MAX_FIRST_LINES = 200;
/** Lines that are kept from its end, at least. */
const MAX_LAST_LINES = 800;
/** Stored lines after which those between are removed: a removal reads the task's events. */
const REMOVAL_INTERVAL_LINES = 100;
/** Largest number of a line: it is an int32 in the API. */
const MAX_LINE_NUMBER = 2 ** 31 - 1;

/** A line's place in the log of its attempt. */
interface LinePlace {
  /** From 1. */
  readonly line: number;
  /** The lines that it displaces; absent for nearly all. */
  readonly displaces?: LineRange;
}

export class EventRateLimit {
  #events = 0;
  /** Log lines that passed. */
  #lines = 0;
  /** The number of the last one. */
  #line = 0;
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

  /** The place of the next log line, after those that were left out. */
  nextLine(skipped: number): LinePlace {
    this.#events += 1;
    this.#lines += 1;
    const line = Math.min(this.#line + skipped + 1, MAX_LINE_NUMBER);
    this.#line = line;
    const isLong = this.#lines > MAX_FIRST_LINES + MAX_LAST_LINES;
    return isLong && this.#lines % REMOVAL_INTERVAL_LINES === 0
      ? { line, displaces: { first: MAX_FIRST_LINES + 1, last: line - MAX_LAST_LINES } }
      : { line };
  }
}
