/**
 * What a node remembers of credentials it has looked up, so that a call does
 * not wait for the database.
 *
 *   - What was found is remembered for at most 30 s from the beginning of the
 *     query, and then asked for again before it is used again: nothing stale
 *     is handed out while it is being refreshed. The 10,000 used last are kept.
 *   - That nothing was found is remembered for 5 s, of 10,000 credentials.
 *   - Uses at the same time share one query, if it began within a second.
 *     At most 2,000 queries are under way.
 *   - A change makes it forget. A query that began before the change has
 *     perhaps seen what was before: its answer goes to those who waited for it
 *     already, and is neither remembered nor shared with anyone later.
 *   - When changes cannot be read, nothing is remembered and nothing that was
 *     is used: every use asks the database.
 *
 * Credentials are known here by a fingerprint, never as they are.
 */
import { problem } from "../errors.ts";
import type { Forgotten } from "./changes.ts";

const REMEMBER_MS = 30_000;
const REMEMBER_ABSENCE_MS = 5_000;
const SHARE_MS = 1_000;
const CAPACITY = 10_000;

/**
 * Queries under way. Were there more while nothing is remembered, the reading
 * of changes would wait behind them for so long that nothing ever was again.
 */
const MAX_UNDER_WAY = 2_000;

/** Beyond these it is cheaper to forget all than to look at all for each. */
const MANY_CHANGES = 50;

/** Something that is found for a credential, with what it depends on. */
export interface Cacheable {
  /** Whether a change concerns it. */
  dependsOn(forgotten: Forgotten): boolean;
}

export interface LookupCacheOptions {
  /** Whether what is remembered can be relied on. */
  readonly isFresh: () => boolean;
  /** Milliseconds that only move forward. */
  readonly monotonicMs: () => number;
  readonly capacity?: number;
}

interface Remembered<Found> {
  readonly found: Found;
  readonly askedMs: number;
}

interface UnderWay<Found> {
  readonly answer: Promise<Found | undefined>;
  readonly askedMs: number;
}

export class LookupCache<Found extends Cacheable> {
  readonly #isFresh: () => boolean;
  readonly #monotonicMs: () => number;
  readonly #capacity: number;
  readonly #found = new Map<string, Remembered<Found>>();
  /** Until when each is known to be absent. */
  readonly #absent = new Map<string, number>();
  readonly #underWay = new Map<string, UnderWay<Found>>();
  /** Also those that are no longer shared. */
  #queries = 0;
  /** Counts the times that something was forgotten. */
  #generation = 0;

  constructor({ isFresh, monotonicMs, capacity = CAPACITY }: LookupCacheOptions) {
    this.#isFresh = isFresh;
    this.#monotonicMs = monotonicMs;
    this.#capacity = capacity;
  }

  /** How many are remembered. */
  get size(): number {
    return this.#found.size;
  }

  /** What is remembered; `null` when it is known that there is nothing, undefined when the database has to be asked. */
  recall(fingerprint: string): Found | null | undefined {
    if (!this.#isFresh()) {
      return undefined;
    }
    const remembered = this.#found.get(fingerprint);
    if (remembered === undefined) {
      return this.#recallAbsence(fingerprint);
    }
    this.#found.delete(fingerprint);
    if (this.#monotonicMs() - remembered.askedMs >= REMEMBER_MS) {
      return undefined;
    }
    // The last one in the map is the one used last.
    this.#found.set(fingerprint, remembered);
    return remembered.found;
  }

  /** The answer that somebody waits for already, if it may be shared. */
  share(fingerprint: string): Promise<Found | undefined> | undefined {
    const underWay = this.#underWay.get(fingerprint);
    return underWay !== undefined && this.#monotonicMs() - underWay.askedMs < SHARE_MS
      ? underWay.answer
      : undefined;
  }

  /**
   * Asks, lets others share the answer, and remembers it. Throws SERVER_BUSY
   * when too many queries are under way.
   */
  ask(fingerprint: string, query: () => Promise<Found | undefined>): Promise<Found | undefined> {
    if (this.#queries >= MAX_UNDER_WAY) {
      throw problem("SERVER_BUSY", "too many credentials have to be looked up: try again", {
        retryAfterMs: 1_000,
      });
    }
    const askedMs = this.#monotonicMs();
    const generation = this.#generation;
    const isFresh = this.#isFresh();
    const follow = async (): Promise<Found | undefined> => {
      this.#queries += 1;
      try {
        const found = await query();
        if (isFresh && generation === this.#generation) {
          this.#remember(fingerprint, found, askedMs);
        }
        return found;
      } finally {
        this.#queries -= 1;
        if (this.#underWay.get(fingerprint) === underWay) {
          this.#underWay.delete(fingerprint);
        }
      }
    };
    const underWay = { answer: follow(), askedMs };
    this.#underWay.set(fingerprint, underWay);
    return underWay.answer;
  }

  /** Forgets all that any of these changes concerns. */
  forget(changes: readonly Forgotten[]): void {
    this.#generation += 1;
    this.#underWay.clear();
    // Of what was not found, it is not known whether a change concerns it.
    this.#absent.clear();
    if (changes.length > MANY_CHANGES) {
      this.#found.clear();
    }
    for (const [fingerprint, { found }] of this.#found) {
      if (changes.some((change) => found.dependsOn(change))) {
        this.#found.delete(fingerprint);
      }
    }
  }

  #recallAbsence(fingerprint: string): null | undefined {
    const untilMs = this.#absent.get(fingerprint);
    if (untilMs === undefined) {
      return undefined;
    }
    if (this.#monotonicMs() < untilMs) {
      return null;
    }
    this.#absent.delete(fingerprint);
    return undefined;
  }

  #remember(fingerprint: string, found: Found | undefined, askedMs: number): void {
    if (found === undefined) {
      bound(this.#absent, this.#capacity);
      this.#absent.set(fingerprint, askedMs + REMEMBER_ABSENCE_MS);
    } else {
      bound(this.#found, this.#capacity);
      this.#found.set(fingerprint, { found, askedMs });
    }
  }
}

/** Makes room for one more by leaving out the first. */
function bound(map: Map<string, unknown>, capacity: number): void {
  if (map.size >= capacity) {
    const [first] = map.keys();
    map.delete(first ?? "");
  }
}
