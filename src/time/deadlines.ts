/** A coalescing timer: one timer for all deadlines of a kind. */
import { MAX_TIMER_MS } from "./alarm.ts";

/** Deadlines closer together than this are looked at together. */
const DEADLINE_GRAIN_MS = 20;

/**
 * One timer for many deadlines, few of which are ever reached. To begin and to
 * end a wait costs a comparison; a timer for each would cost as much as the
 * rest of the wait. A deadline is noticed at most 20 ms late. Times are those
 * of `performance.now()`.
 */
export class Deadlines {
  readonly #look: (nowMs: number) => number;
  #nextMs = Number.POSITIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  /** `look` ends what is due and returns the earliest remaining deadline, or Infinity. */
  constructor(look: (nowMs: number) => number) {
    this.#look = look;
  }

  /** Adds a deadline. */
  expect(deadlineMs: number): void {
    if (deadlineMs < this.#nextMs) {
      this.#schedule(deadlineMs);
    }
  }

  /** Stops the timer when no deadline is left; a running one would keep all that `look` refers to. */
  clear(): void {
    this.#nextMs = Number.POSITIVE_INFINITY;
    clearTimeout(this.#timer);
  }

  #schedule(deadlineMs: number): void {
    const nextMs = Math.ceil(deadlineMs / DEADLINE_GRAIN_MS) * DEADLINE_GRAIN_MS;
    if (nextMs < this.#nextMs) {
      this.#nextMs = nextMs;
      clearTimeout(this.#timer);
      const waitMs = Math.ceil(Math.max(nextMs - performance.now(), 0));
      // Unref'd: what has a deadline keeps the process alive by itself.
      this.#timer = setTimeout(() => this.#wake(), Math.min(waitMs, MAX_TIMER_MS)).unref();
    }
  }

  #wake(): void {
    // A deadline added meanwhile is seen by `look`, or sets the timer again.
    this.#nextMs = Number.POSITIVE_INFINITY;
    this.expect(this.#look(performance.now()));
  }
}
