import { MAX_TIMER_MS } from "./alarm.ts";

/** Deadlines closer together than this are looked at together. */
const GRAIN_MS = 50;

/**
 * One timer for all who have a deadline, of which few are ever reached: to
 * begin and to end such a wait costs a comparison, where a timer of its own
 * costs as much as the rest of it. Whoever reaches a deadline is told at most
 * 50 ms late. Times are those of `performance.now()`.
 */
export class Deadlines {
  readonly #look: (nowMs: number) => number;
  #nextMs = Number.POSITIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  /** `look` ends what is due and returns the earliest deadline of what is left; Infinity for none. */
  constructor(look: (nowMs: number) => number) {
    this.#look = look;
  }

  /** There is a deadline at this time. */
  expect(deadlineMs: number): void {
    if (deadlineMs < this.#nextMs) {
      this.#schedule(deadlineMs);
    }
  }

  /** Nobody has a deadline any more. Until the next, the timer would keep all that `look` knows. */
  clear(): void {
    this.#nextMs = Number.POSITIVE_INFINITY;
    clearTimeout(this.#timer);
  }

  #schedule(deadlineMs: number): void {
    const nextMs = Math.ceil(deadlineMs / GRAIN_MS) * GRAIN_MS;
    if (nextMs < this.#nextMs) {
      this.#nextMs = nextMs;
      clearTimeout(this.#timer);
      const waitMs = Math.ceil(Math.max(nextMs - performance.now(), 0));
      // Whatever has a deadline keeps the process alive by itself.
      this.#timer = setTimeout(() => this.#wake(), Math.min(waitMs, MAX_TIMER_MS)).unref();
    }
  }

  #wake(): void {
    // What is added meanwhile is among what is looked at, or sets the timer again.
    this.#nextMs = Number.POSITIVE_INFINITY;
    this.expect(this.#look(performance.now()));
  }
}
