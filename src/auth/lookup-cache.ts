/**
 * The lookup cache of credentials: an LRU cache with single-flight queries, so
 * that calls do not wait for the database.
 *
 * - A result is cached for at most 30 s from the start of its query. After that
 *   the next use waits for a new query; a stale entry is never served during a
 *   refresh. The 10,000 most recently used are kept.
 * - A missing credential is cached for 5 s (negative cache), at most 10,000 of
 *   them.
 * - Concurrent uses share one query if it began within the last second. At most
 *   2,000 queries run at once.
 * - A change event drops the entries that it concerns. A query that began
 *   before the event may have read the old state: its result goes only to the
 *   callers that already wait for it, and is neither cached nor shared later.
 * - While the change feed is not fresh, the cache is bypassed: every use asks
 *   the database.
 *
 * Keys are fingerprints; the cache never holds a credential itself.
 */
import { problem } from "../errors.ts";
import type { Forgotten } from "./change-feed.ts";

/** How long a credential that was found stays in the cache, from the beginning of its query. */
const CREDENTIAL_CACHE_TTL_MS = 30_000;
/** How long the cache remembers that a credential was not found. */
const CREDENTIAL_CACHE_ABSENCE_TTL_MS = 5_000;
/** Age up to which a query under way is shared by further uses of the same credential. */
const CREDENTIAL_QUERY_SHARE_MS = 1_000;
/**
 * Credentials in the cache, and as many that were not found; those used least recently are
 * dropped.
 */
const MAX_CACHED_CREDENTIALS = 10_000;

/**
 * Queries for credentials under way. With more of them while nothing is cached, the reading of
 * changes would wait behind them for so long that nothing would ever be cached again.
 */
const MAX_CREDENTIAL_QUERIES = 2_000;

/**
 * Changes of one read that are evicted one by one; beyond these it is cheaper to clear the
 * cache than to search it for each.
 */
const MAX_SINGLE_EVICTIONS = 50;

/** A cached result, which knows what it depends on. */
export interface Cacheable {
  /** Whether a change invalidates it. */
  dependsOn(forgotten: Forgotten): boolean;
}

interface LookupCacheOptions {
  /** Whether cached entries can be relied on. */
  readonly isFresh: () => boolean;
  /** A monotonic clock, in milliseconds. */
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
  /** When each negative entry expires. */
  readonly #absent = new Map<string, number>();
  readonly #underWay = new Map<string, UnderWay<Found>>();
  /** Running queries, including those that are no longer shared. */
  #queries = 0;
  /** Incremented by every invalidation. */
  #generation = 0;

  constructor({ isFresh, monotonicMs, capacity = MAX_CACHED_CREDENTIALS }: LookupCacheOptions) {
    this.#isFresh = isFresh;
    this.#monotonicMs = monotonicMs;
    this.#capacity = capacity;
  }

  /** The number of cached results. */
  get size(): number {
    return this.#found.size;
  }

  /**
   * Returns the cached result; `null` when the credential is known not to
   * exist, undefined when the database has to be asked.
   */
  recall(fingerprint: string): Found | null | undefined {
    if (!this.#isFresh()) {
      return undefined;
    }
    const remembered = this.#found.get(fingerprint);
    if (remembered === undefined) {
      return this.#recallAbsence(fingerprint);
    }
    this.#found.delete(fingerprint);
    if (this.#monotonicMs() - remembered.askedMs >= CREDENTIAL_CACHE_TTL_MS) {
      return undefined;
    }
    // The last entry of the map is the most recently used.
    this.#found.set(fingerprint, remembered);
    return remembered.found;
  }

  /** Joins a running query, if it may be shared. */
  share(fingerprint: string): Promise<Found | undefined> | undefined {
    const underWay = this.#underWay.get(fingerprint);
    return underWay !== undefined &&
      this.#monotonicMs() - underWay.askedMs < CREDENTIAL_QUERY_SHARE_MS
      ? underWay.answer
      : undefined;
  }

  /**
   * Runs a query, shares its result with concurrent callers, and caches it.
   * Throws SERVER_BUSY when too many queries are running.
   */
  ask(fingerprint: string, query: () => Promise<Found | undefined>): Promise<Found | undefined> {
    if (this.#queries >= MAX_CREDENTIAL_QUERIES) {
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

  /** Drops all entries that these changes invalidate. */
  forget(changes: readonly Forgotten[]): void {
    this.#generation += 1;
    this.#underWay.clear();
    // A change may concern any credential that was not found.
    this.#absent.clear();
    if (changes.length > MAX_SINGLE_EVICTIONS) {
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
      this.#absent.set(fingerprint, askedMs + CREDENTIAL_CACHE_ABSENCE_TTL_MS);
    } else {
      bound(this.#found, this.#capacity);
      this.#found.set(fingerprint, { found, askedMs });
    }
  }
}

/** Makes room for one more by evicting the first entry. */
function bound(map: Map<string, unknown>, capacity: number): void {
  if (map.size >= capacity) {
    const [first] = map.keys();
    map.delete(first ?? "");
  }
}
