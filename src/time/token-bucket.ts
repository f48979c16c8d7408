/**
 * A token bucket: allows `perSecond` operations a second, and as many in one
 * burst. For optional work that must not grow with the load.
 */
export class TokenBucket {
  readonly #perSecond: number;
  readonly #now: () => number;
  #left: number;
  #filledMs: number;

  constructor(perSecond: number, now: () => number) {
    this.#perSecond = perSecond;
    this.#now = now;
    this.#left = perSecond;
    this.#filledMs = now();
  }

  /** Takes a token; false when the bucket is empty. */
  take(): boolean {
    const nowMs = this.#now();
    const passedMs = Math.max(nowMs - this.#filledMs, 0);
    this.#filledMs = nowMs;
    this.#left = Math.min(this.#left + (passedMs / 1000) * this.#perSecond, this.#perSecond);
    if (this.#left < 1) {
      return false;
    }
    this.#left -= 1;
    return true;
  }
}
