/**
 * Limits failed attempts by address: so many at once, then one every few
 * seconds. It protects what stands behind an attempt (a query, a password's
 * hash), not the secrets, which are too long to be guessed.
 *
 * Each address has a bucket of failures that fills again with time. Attempts
 * that are under way count apart, so that nobody sends thousands before the
 * first of them has failed. An IPv6 address counts with its /64. Addresses
 * are forgotten when there are too many, those first that failed longest ago.
 */
import { problem } from "../errors.ts";
import { addressGroup } from "./networks.ts";

export interface FailureLimiterOptions {
  /** Failures that are let happen at once. Default 20: some typing errors, some stale programs. */
  readonly burst?: number;
  /** Time after which one more is, in milliseconds. Default 3,000. */
  readonly refillMs?: number;
  /**
   * Attempts of one address under way at once. Default 256, for tokens: after
   * a restart none is remembered. For what can be guessed, fewer: so many can
   * fail before the first failure counts.
   */
  readonly underWay?: number;
  /** Addresses kept. Default 50,000: some 10 MB. */
  readonly capacity?: number;
  /** Milliseconds that only move forward. */
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
  readonly #monotonicMs: () => number;
  readonly #buckets = new Map<string, Bucket>();

  constructor(options: FailureLimiterOptions = {}) {
    this.#burst = options.burst ?? 20;
    this.#refillMs = options.refillMs ?? 3_000;
    this.#underWay = options.underWay ?? 256;
    this.#capacity = options.capacity ?? 50_000;
    this.#monotonicMs = options.monotonicMs ?? (() => performance.now());
  }

  /** How many addresses are remembered. */
  get size(): number {
    return this.#buckets.size;
  }

  /** Throws RATE_LIMITED, with the time to wait, for an address that failed too often. */
  check(address: string): void {
    this.#check(this.#buckets.get(addressGroup(address)));
  }

  /** Notes a failed attempt. */
  fail(address: string): void {
    const group = addressGroup(address);
    const bucket = this.#filled(this.#buckets.get(group)) ?? this.#newBucket();
    bucket.left = Math.max(0, bucket.left - 1);
    this.#put(group, bucket);
  }

  /**
   * Makes an attempt, whose answer says whether it failed; one that throws has
   * not. Throws RATE_LIMITED before the attempt begins.
   */
  attempt<Result>(
    address: string,
    attempt: () => Promise<Result>,
    isFailure: (result: Result) => boolean,
  ): Promise<Result> {
    const group = addressGroup(address);
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
      // Most attempts succeed, and leave nothing to remember.
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
      throw problem("RATE_LIMITED", "too many failed attempts from this address: try later", {
        retryAfterMs: Math.max(1_000, Math.ceil(missing * this.#refillMs)),
      });
    }
  }

  /** The bucket with what time has added. */
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
