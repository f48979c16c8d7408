/**
 * A rate limit on failed attempts per address, as a token bucket: a burst, then
 * one every few seconds. It protects the resources behind an attempt (a query,
 * a password hash), not the secrets, which are too long to be guessed.
 *
 * Attempts under way have a limit of their own, so that nobody sends thousands
 * before the first one has failed. An IPv6 address counts with its /64. The
 * number of addresses is bounded; the one that failed longest ago is evicted
 * first.
 */
import { addressGroup } from "../collections/networks.ts";
import { type BucketRate, TokenBucket } from "../collections/token-bucket.ts";
import { problem } from "../errors.ts";

/** Failed attempts of one address at once: some typing errors, some stale programs. */
const MAX_FAILURE_BURST = 20;

/** Time in which an address gets one more failed attempt back. */
const FAILURE_REFILL_MS = 3_000;

/** Attempts of one address under way at once: after a restart, no token is cached. */
const MAX_ATTEMPTS_UNDER_WAY = 256;

/** Addresses whose failures are kept: some 10 MB. */
const MAX_LIMITED_ADDRESSES = 50_000;

export interface FailureLimiterOptions {
  /**
   * The bucket's size: failures allowed at once. Default 20: some typing
   * errors, some stale programs.
   */
  readonly burst?: number;
  /** Milliseconds until one more failure is allowed. Default 3,000. */
  readonly refillMs?: number;
  /**
   * Concurrent attempts of one address. Default 256, for tokens: after a
   * restart the cache is empty. Use fewer for secrets that can be guessed: this
   * many can fail before the first failure counts.
   */
  readonly underWay?: number;
  /** Maximum number of addresses. Default 50,000: some 10 MB. */
  readonly capacity?: number;
  /** Keys that share a bucket have the same group. Default: addresses, as above. */
  readonly groupOf?: (key: string) => string;
  /** The message of a refusal. Default: about failed attempts. */
  readonly refusal?: string;
  /** A monotonic clock, in milliseconds. */
  readonly monotonicMs?: () => number;
}

interface Attempts {
  readonly bucket: TokenBucket;
  underWay: number;
}

export class FailureLimiter {
  readonly #rate: BucketRate;
  readonly #underWay: number;
  readonly #capacity: number;
  readonly #groupOf: (key: string) => string;
  readonly #refusal: string;
  readonly #addresses = new Map<string, Attempts>();

  constructor(options: FailureLimiterOptions = {}) {
    this.#rate = {
      size: options.burst ?? MAX_FAILURE_BURST,
      refillMs: options.refillMs ?? FAILURE_REFILL_MS,
      nowMs: options.monotonicMs,
    };
    this.#underWay = options.underWay ?? MAX_ATTEMPTS_UNDER_WAY;
    this.#capacity = options.capacity ?? MAX_LIMITED_ADDRESSES;
    this.#groupOf = options.groupOf ?? addressGroup;
    this.#refusal = options.refusal ?? "too many failed attempts from this address: try later";
  }

  /** The number of tracked addresses. */
  get size(): number {
    return this.#addresses.size;
  }

  /** Throws RATE_LIMITED, with the time to wait, when the address failed too often. */
  check(address: string): void {
    this.#check(this.#addresses.get(this.#groupOf(address)));
  }

  /** Counts a failed attempt. */
  fail(address: string): void {
    const group = this.#groupOf(address);
    const attempts = this.#addresses.get(group) ?? this.#none();
    attempts.bucket.spend(1, 0);
    this.#put(group, attempts);
  }

  /**
   * Runs an attempt, whose result says whether it failed; one that throws does
   * not count as failed. Throws RATE_LIMITED before the attempt begins.
   */
  attempt<Result>(
    address: string,
    attempt: () => Promise<Result>,
    isFailure: (result: Result) => boolean,
  ): Promise<Result> {
    const group = this.#groupOf(address);
    const known = this.#addresses.get(group);
    this.#check(known);
    const attempts = known ?? this.#none();
    attempts.underWay += 1;
    this.#put(group, attempts);
    return this.#follow({ address, group, attempts }, attempt, isFailure);
  }

  async #follow<Result>(
    { address, group, attempts }: { address: string; group: string; attempts: Attempts },
    attempt: () => Promise<Result>,
    isFailure: (result: Result) => boolean,
  ): Promise<Result> {
    try {
      const result = await attempt();
      if (isFailure(result)) {
        this.fail(address);
      }
      return result;
    } finally {
      attempts.underWay -= 1;
      // Most attempts succeed and need no bucket.
      if (attempts.underWay === 0 && attempts.bucket.isFull) {
        this.#addresses.delete(group);
      }
    }
  }

  #check(attempts: Attempts | undefined): void {
    if (attempts === undefined) {
      return;
    }
    const waitMs = attempts.bucket.msUntil(1);
    if (waitMs > 0 || attempts.underWay >= this.#underWay) {
      const retryAfterMs = Math.max(1_000, Math.ceil(waitMs));
      throw problem("RATE_LIMITED", this.#refusal, { retryAfterMs });
    }
  }

  #none(): Attempts {
    return { bucket: new TokenBucket(this.#rate), underWay: 0 };
  }

  #put(group: string, attempts: Attempts): void {
    this.#addresses.delete(group);
    this.#addresses.set(group, attempts);
    if (this.#addresses.size > this.#capacity) {
      const [oldest] = this.#addresses.keys();
      this.#addresses.delete(oldest ?? "");
    }
  }
}
