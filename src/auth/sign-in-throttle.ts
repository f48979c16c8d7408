/**
 * Slows down guesses at one person's password, which may come from anywhere:
 * the limit by address (failures.ts) sees only a few from each of many
 * addresses. An account is never locked, or strangers could keep its person
 * out; instead attempts count by where they come from.
 *
 *   - A **known** place is a browser in which the person has signed in before
 *     (it has a cookie that says so, devices.ts), their session, or an address
 *     from which they signed in since this node started. There nothing but
 *     their own failures counts.
 *   - All **other** places share one budget for the account: 30 failures, and
 *     one more every two minutes. It bounds what a whole botnet can guess, to
 *     some 750 a day.
 *   - Each place alone, known or a network of strangers, may fail five times,
 *     and then waits: 2 s, 4 s, and so on to a quarter of an hour. So nobody
 *     uses up the budget by himself.
 *
 * An attempt counts as a failure from when it begins, in its place and in the
 * budget, until it turns out to be none: many at once get no more than the
 * same one after another.
 *
 * Under attack, then, who signs in where they never did may have to wait; in
 * their own browser they do not. These are the device cookies of OWASP
 * (https://owasp.org/www-community/Slow_Down_Online_Guessing_Attacks_with_Device_Cookies),
 * with a slow-down where that has a lock-out, and with addresses for programs
 * that keep no cookies.
 *
 * Accounts count by the address that was typed, whether they exist or not, so
 * that limits tell nothing. What is remembered is bounded: of too many, those
 * are forgotten that were tried longest ago. Each node counts for itself.
 */
import { problem } from "../errors.ts";
import { addressGroup, addressNetwork } from "./networks.ts";

export interface SignInThrottleOptions {
  /** Accounts kept, and places. Default 50,000: some 20 MB. */
  readonly capacity?: number;
  /** Milliseconds that only move forward. */
  readonly monotonicMs?: () => number;
}

/** Who seems to sign in, and from where. */
export interface SignInAttempt {
  /** The e-mail address. */
  readonly account: string;
  readonly address: string;
  /** A browser or session of the person's; undefined where that is not known. */
  readonly device: string | undefined;
}

const BUDGET = 30;
const REFILL_MS = 2 * 60_000;

const FREE_FAILURES = 5;
const FIRST_WAIT_MS = 2_000;
const MAX_WAIT_MS = 15 * 60_000;

/** Failures of a place are forgotten when there was none for so long. */
const FORGET_MS = 2 * 3_600_000;

/** Addresses of one person that count as known. */
const MAX_HOMES = 8;

interface Budget {
  left: number;
  atMs: number;
}

interface Place {
  failures: number;
  lastMs: number;
  /** Attempts that have not ended. */
  underWay: number;
}

export class SignInThrottle {
  readonly #capacity: number;
  readonly #monotonicMs: () => number;
  readonly #budgets = new Map<string, Budget>();
  readonly #places = new Map<string, Place>();
  /** Where each account's person has signed in, last first. */
  readonly #homes = new Map<string, readonly string[]>();

  constructor({ capacity = 50_000, monotonicMs }: SignInThrottleOptions = {}) {
    this.#capacity = capacity;
    this.#monotonicMs = monotonicMs ?? (() => performance.now());
  }

  /** How much is remembered. */
  get size(): number {
    return Math.max(this.#budgets.size, this.#places.size, this.#homes.size);
  }

  /** Whether an attempt comes from where the person has been before. */
  isKnown({ account, address, device }: SignInAttempt): boolean {
    const homes = this.#homes.get(account) ?? [];
    return device !== undefined || homes.includes(addressGroup(address));
  }

  /**
   * Makes an attempt, whose answer says whether it failed; one that throws has
   * not. Throws RATE_LIMITED before the attempt begins.
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

  /** Notes that the person has signed in: their place is known from now on, and what failed there forgotten. */
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
    this.#put(this.#homes, account, [home, ...others.slice(0, MAX_HOMES - 1)]);
  }

  /** Lets an attempt begin in a place. */
  #enter(key: string): Place {
    const nowMs = this.#monotonicMs();
    const place = this.#places.get(key) ?? { failures: 0, lastMs: nowMs, underWay: 0 };
    if (nowMs - place.lastMs > FORGET_MS) {
      place.failures = 0;
    }
    // Also when it is refused: what is under attack is not the first to be forgotten.
    this.#put(this.#places, key, place);
    const excess = place.failures + place.underWay - FREE_FAILURES;
    if (excess >= 0) {
      const waitMs = Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** excess);
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

  /** Takes one of what strangers may fail at an account; answers what gives it back. */
  #take(account: string): () => void {
    const nowMs = this.#monotonicMs();
    const budget = this.#budgets.get(account) ?? { left: BUDGET, atMs: nowMs };
    budget.left = Math.min(BUDGET, budget.left + (nowMs - budget.atMs) / REFILL_MS);
    budget.atMs = nowMs;
    this.#put(this.#budgets, account, budget);
    if (budget.left < 1) {
      throw limited((1 - budget.left) * REFILL_MS);
    }
    budget.left -= 1;
    return () => {
      budget.left += 1;
      if (budget.left >= BUDGET && this.#budgets.get(account) === budget) {
        this.#budgets.delete(account);
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

/** Strangers count with their network, of which one of them may have many addresses. */
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
