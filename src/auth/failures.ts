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
import { problem } from "../errors.ts";
import { addressGroup } from "./networks.ts";

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

interface Bucket {
  left: number;
  atMs: number;
  underWay: number;
}

export class FailureLimiter {
  readonly #burst: number;
  readonly #refillMs: number;
  readonly #underWay: number;
  readonly #capacity: number;
  readonly #groupOf: (key: string) => string;
  readonly #refusal: string;
  readonly #monotonicMs: () => number;
  readonly #buckets = new Map<string, Bucket>();

  constructor(options: FailureLimiterOptions = {}) {
    this.#burst = options.burst ?? MAX_FAILURE_BURST;
    this.#refillMs = options.refillMs ?? FAILURE_REFILL_MS;
    this.#underWay = options.underWay ?? MAX_ATTEMPTS_UNDER_WAY;
    this.#capacity = options.capacity ?? MAX_LIMITED_ADDRESSES;
    this.#groupOf = options.groupOf ?? addressGroup;
    this.#refusal = options.refusal ?? "too many failed attempts from this address: try later";
    this.#monotonicMs = options.monotonicMs ?? (() => performance.now());
  }

  /** The number of tracked addresses. */
  get size(): number {
    return this.#buckets.size;
  }

  /** Throws RATE_LIMITED, with the time to wait, when the address failed too often. */
  check(address: string): void {
    this.#check(this.#buckets.get(this.#groupOf(address)));
  }

  /** Counts a failed attempt. */
  fail(address: string): void {
    const group = this.#groupOf(address);
    const bucket = this.#filled(this.#buckets.get(group)) ?? this.#newBucket();
    bucket.left = Math.max(0, bucket.left - 1);
    this.#put(group, bucket);
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
    const known = this.#buckets.get(group);
    this.#check(known);
    const bucket = known ?? this.#newBucket();
    bucket.underWay += 1;
    this.#put(group, bucket);
    return this.#follow({ address, group, bucket }, attempt, isFailure);
  }

  async #follow<Result>(
    { address, group, bucket }: { address: string; group: string; bucket: Bucket },
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
      bucket.underWay -= 1;
      // Most attempts succeed and need no bucket.
      if (bucket.underWay === 0 && this.#filled(bucket)?.left === this.#burst) {
        this.#buckets.delete(group);
      }
    }
  }

  #check(bucket: Bucket | undefined): void {
    if (this.#filled(bucket) === undefined || bucket === undefined) {
      return;
    }
    if (bucket.left < 1 || bucket.underWay >= this.#underWay) {
      const missing = Math.max(0, 1 - bucket.left);
      throw problem("RATE_LIMITED", this.#refusal, {
        retryAfterMs: Math.max(1_000, Math.ceil(missing * this.#refillMs)),
      });
    }
  }

  /** Refills the bucket for the time passed. */
  #filled(bucket: Bucket | undefined): Bucket | undefined {
    if (bucket !== undefined) {
      const nowMs = this.#monotonicMs();
      bucket.left = Math.min(this.#burst, bucket.left + (nowMs - bucket.atMs) / this.#refillMs);
      bucket.atMs = nowMs;
    }
    return bucket;
  }

  #newBucket(): Bucket {
    return { left: this.#burst, atMs: this.#monotonicMs(), underWay: 0 };
  }

  #put(group: string, bucket: Bucket): void {
    this.#buckets.delete(group);
    this.#buckets.set(group, bucket);
    if (this.#buckets.size > this.#capacity) {
      const [oldest] = this.#buckets.keys();
      this.#buckets.delete(oldest ?? "");
    }
  }
}
