/**
 * Shared reads: a cache with an age limit, in which a read that is under way is
 * joined. A caller that asks for the same key within that time gets the same answer,
 * so that a database is asked once however many people look.
 */

/** Answers that are kept, of all keys; the oldest make room. */
const MAX_SHARED_READS = 1_000;

interface Read<Value> {
  readonly answer: Promise<Value>;
  readonly begunMs: number;
}

export class SharedReads<Value> {
  readonly #reads = new Map<string, Read<Value>>();
  readonly #maxAgeMs: number;
  readonly #now: () => number;

  constructor({ maxAgeMs, now }: { readonly maxAgeMs: number; readonly now: () => number }) {
    this.#maxAgeMs = maxAgeMs;
    this.#now = now;
  }

  /** The answer of a read that began within the age limit, or of `read`. Failures are not kept. */
  get(key: string, read: () => Promise<Value>): Promise<Value> {
    const nowMs = this.#now();
    const known = this.#reads.get(key);
    if (known !== undefined && Math.abs(nowMs - known.begunMs) < this.#maxAgeMs) {
      return known.answer;
    }
    return this.again(key, read);
  }

  /** Reads anew, for all who ask from now on. */
  again(key: string, read: () => Promise<Value>): Promise<Value> {
    const begun = { answer: read(), begunMs: this.#now() };
    // The oldest are first.
    this.#reads.delete(key);
    this.#reads.set(key, begun);
    const [oldest] = this.#reads.keys();
    if (oldest !== undefined && this.#reads.size > MAX_SHARED_READS) {
      this.#reads.delete(oldest);
    }
    begun.answer.catch(() => {
      if (this.#reads.get(key) === begun) {
        this.#reads.delete(key);
      }
    });
    return begun.answer;
  }
}
