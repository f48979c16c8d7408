/**
 * The rate limit on sign-ins per account. It slows down password guesses from
 * many addresses, of which the limit per address (failures.ts) sees only a few
 * each. An account is never locked, because strangers could then keep its owner
 * out; instead attempts count by their place.
 *
 * - A **known** place is a browser in which the person has signed in before (it
 *   has a device cookie, devices.ts), their session, or an address from which
 *   they signed in since this node started. Only its own failures count there.
 * - All **other** places share one token bucket per account: 30 failures,
 *   refilled by one every two minutes. It limits a whole botnet to some 750
 *   guesses a day.
 * - Each single place, known or a network of strangers, may fail five times and
 *   then waits with exponential backoff: 2 s, 4 s, and so on up to a quarter of
 *   an hour. So no single place can drain the bucket.
 *
 * An attempt counts as a failure from its start, for its place and in the
 * bucket, until it succeeds: parallel guesses get no more than sequential ones.
 *
 * Under attack, a person who signs in from a new place may have to wait; in
 * their own browser they do not. This is OWASP's scheme of device cookies
 * (https://owasp.org/www-community/Slow_Down_Online_Guessing_Attacks_with_Device_Cookies),
 * with a slow-down instead of a lock-out, and with addresses for programs that
 * keep no cookies.
 *
 * Accounts count by the typed e-mail address, whether they exist or not, so
 * that limits reveal nothing. The state is bounded: the entry that was tried
 * longest ago is evicted first. Each node counts for itself.
 */
import { addressGroup, addressNetwork } from "../collections/networks.ts";
import { type BucketRate, TokenBucket } from "../collections/token-bucket.ts";
import { problem } from "../errors.ts";

interface SignInThrottleOptions {
  /** Maximum number of accounts, and of places. Default 50,000: some 20 MB. */
  readonly capacity?: number;
  /** A monotonic clock, in milliseconds. */
  readonly monotonicMs?: () => number;
}

/** An account and the place of the attempt. */
export interface SignInAttempt {
  /** The e-mail address. */
  readonly account: string;
  readonly address: string;
  /** A known browser or a session of the person; undefined for strangers. */
  readonly device: string | undefined;
}

/** Burst of sign-in attempts that an account takes from unknown places. */
const MAX_ACCOUNT_SIGN_INS = 30;
/** Time in which an account gets one more sign-in attempt back. */
const SIGN_IN_REFILL_MS = 2 * 60_000;

/** Failed sign-ins at one place before further ones have to wait. */
const MAX_FREE_SIGN_IN_FAILURES = 5;
/** First wait after too many failed sign-ins at one place; it doubles with each further one. */
const SIGN_IN_FIRST_WAIT_MS = 2_000;
/** Longest wait between two sign-ins at one place. */
const SIGN_IN_MAX_WAIT_MS = 15 * 60_000;

/** Time without a failure after which the failures of a place are forgotten. */
const SIGN_IN_FORGET_MS = 2 * 3_600_000;

/** Known addresses per person. */
const MAX_HOME_ADDRESSES = 8;

/** Accounts kept, and as many places: some 20 MB. */
const MAX_THROTTLED_PLACES = 50_000;

interface Place {
  failures: number;
  lastMs: number;
  /** Attempts under way. */
  underWay: number;
}

export class SignInThrottle {
  readonly #capacity: number;
  readonly #monotonicMs: () => number;
  readonly #rate: BucketRate;
  readonly #buckets = new Map<string, TokenBucket>();
  readonly #places = new Map<string, Place>();
  /** Known addresses per account, most recent first. */
  readonly #homes = new Map<string, readonly string[]>();

  constructor({ capacity = MAX_THROTTLED_PLACES, monotonicMs }: SignInThrottleOptions = {}) {
    this.#capacity = capacity;
    this.#monotonicMs = monotonicMs ?? (() => performance.now());
    this.#rate = {
      size: MAX_ACCOUNT_SIGN_INS,
      refillMs: SIGN_IN_REFILL_MS,
      nowMs: this.#monotonicMs,
    };
  }

  /** The number of entries in the largest table. */
  get size(): number {
    return Math.max(this.#buckets.size, this.#places.size, this.#homes.size);
  }

  /** Whether an attempt comes from a known place. */
  isKnown({ account, address, device }: SignInAttempt): boolean {
    const homes = this.#homes.get(account) ?? [];
    return device !== undefined || homes.includes(addressGroup(address));
  }

  /**
   * Runs an attempt, whose result says whether it failed; one that throws does
   * not count as failed. Throws RATE_LIMITED before the attempt begins.
   */
  async attempt<Result>(
    attempt: SignInAttempt,
    make: () => Promise<Result>,
    isFailure: (result: Result) => boolean,
  ): Promise<Result> {
    const isKnown = this.isKnown(attempt);
    const key = placeOf(attempt, isKnown);
    const place = this.#enter(key);
    let failed = false;
    let giveBack = () => {};
    try {
      if (!isKnown) {
        giveBack = this.#take(attempt.account);
      }
      const result = await make();
      failed = isFailure(result);
      return result;
    } finally {
      this.#leave(key, place, failed);
      if (!failed) {
        giveBack();
      }
    }
  }

  /**
   * Records a successful sign-in: the place is known from now on, and its
   * failures are cleared.
   */
  succeed(attempt: SignInAttempt): void {
    const { account, address } = attempt;
    const key = placeOf(attempt, this.isKnown(attempt));
    const place = this.#places.get(key);
    if (place !== undefined) {
      place.failures = 0;
      this.#forgetEmpty(key, place);
    }
    const home = addressGroup(address);
    const others = (this.#homes.get(account) ?? []).filter((each) => each !== home);
    this.#put(this.#homes, account, [home, ...others.slice(0, MAX_HOME_ADDRESSES - 1)]);
  }

  /** Starts an attempt of a place. */
  #enter(key: string): Place {
    const nowMs = this.#monotonicMs();
    const place = this.#places.get(key) ?? { failures: 0, lastMs: nowMs, underWay: 0 };
    if (nowMs - place.lastMs > SIGN_IN_FORGET_MS) {
      place.failures = 0;
    }
    // Also for a refused attempt: a place under attack must not be the first to
    // be evicted.
    this.#put(this.#places, key, place);
    const excess = place.failures + place.underWay - MAX_FREE_SIGN_IN_FAILURES;
    if (excess >= 0) {
      const waitMs = Math.min(SIGN_IN_MAX_WAIT_MS, SIGN_IN_FIRST_WAIT_MS * 2 ** excess);
      const sinceMs = place.underWay > 0 ? nowMs : place.lastMs;
      if (sinceMs + waitMs > nowMs) {
        throw limited(sinceMs + waitMs - nowMs);
      }
    }
    place.underWay += 1;
    return place;
  }

  #leave(key: string, place: Place, failed: boolean): void {
    place.underWay -= 1;
    if (failed) {
      place.failures += 1;
      place.lastMs = this.#monotonicMs();
      this.#put(this.#places, key, place);
    } else {
      this.#forgetEmpty(key, place);
    }
  }

  #forgetEmpty(key: string, place: Place): void {
    if (place.failures + place.underWay === 0 && this.#places.get(key) === place) {
      this.#places.delete(key);
    }
  }

  /** Takes one from the account's token bucket; returns a function that puts it back. */
  #take(account: string): () => void {
    const bucket = this.#buckets.get(account) ?? new TokenBucket(this.#rate);
    this.#put(this.#buckets, account, bucket);
    if (!bucket.take()) {
      throw limited(bucket.msUntil(1));
    }
    return () => {
      bucket.giveBack();
      if (bucket.isFull && this.#buckets.get(account) === bucket) {
        this.#buckets.delete(account);
      }
    };
  }

  #put<Value>(map: Map<string, Value>, key: string, value: Value): void {
    map.delete(key);
    map.set(key, value);
    if (map.size > this.#capacity) {
      const [oldest = ""] = map.keys();
      map.delete(oldest);
    }
  }
}

/**
 * The key of a place. Strangers count with their network, because one
 * attacker may own many of its addresses.
 */
function placeOf({ account, address, device }: SignInAttempt, isKnown: boolean): string {
  const place = isKnown ? (device ?? addressGroup(address)) : addressNetwork(address);
  return `${account} ${place}`;
}

function limited(afterMs: number): Error {
  return problem(
    "RATE_LIMITED",
    "too many failed attempts to sign in to this account: wait, or sign in in a browser in which you have done so before",
    { retryAfterMs: Math.max(1_000, Math.ceil(afterMs)) },
  );
}
