/**
 * A token bucket: the limit of a rate, which allows a burst. It begins full, and one token comes
 * back every `refillMs`.
 */
export interface BucketRate {
  /** The most tokens that a bucket holds: the burst. */
  readonly size: number;
  /** Milliseconds in which one token comes back. */
  readonly refillMs: number;
  /** A clock, in milliseconds. Default: a monotonic one. */
  readonly nowMs?: (() => number) | undefined;
}

/** The rate of a number of tokens a second, with a burst of one second. */
export function perSecond(tokens: number): BucketRate {
  return { size: tokens, refillMs: 1_000 / tokens };
}

export class TokenBucket {
  /** Shared by many buckets, so that each of them is small. */
  readonly #rate: BucketRate;
  #left: number;
  #filledMs: number;

  constructor(rate: BucketRate) {
    this.#rate = rate;
    this.#left = rate.size;
    this.#filledMs = this.#now();
  }

  get isFull(): boolean {
    this.#fill();
    return this.#left >= this.#rate.size;
  }

  /** Tokens that can be taken. */
  get left(): number {
    this.#fill();
    return Math.max(0, Math.floor(this.#left));
  }

  /** Takes tokens, and goes into `debt` for them at most; false when that is too few. */
  take(tokens = 1, debt = 0): boolean {
    this.#fill();
    if (this.#left + debt < tokens) {
      return false;
    }
    this.#left -= tokens;
    return true;
  }

  /**
   * Takes tokens, whether it has them or not: down to `min`, and without an end by default. Returns
   * the milliseconds until it is out of debt; 0 when it has none.
   */
  spend(tokens: number, min = Number.NEGATIVE_INFINITY): number {
    this.#fill();
    this.#left = Math.max(this.#left - tokens, min);
    return Math.max(0, -this.#left * this.#rate.refillMs);
  }

  /** Gives back a token that was taken. */
  giveBack(): void {
    this.#left += 1;
  }

  /** Milliseconds until it holds this many tokens; 0 when it does. */
  msUntil(tokens: number): number {
    this.#fill();
    return Math.max(0, (tokens - this.#left) * this.#rate.refillMs);
  }

  #fill(): void {
    const { size, refillMs } = this.#rate;
    const nowMs = this.#now();
    const passedMs = Math.max(nowMs - this.#filledMs, 0);
    this.#filledMs = nowMs;
    this.#left = Math.min(this.#left + passedMs / refillMs, size);
  }

  #now(): number {
    return this.#rate.nowMs?.() ?? performance.now();
  }
}
