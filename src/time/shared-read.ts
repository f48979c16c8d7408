/** A read that callers share: within a time of its start they get the same answer. */
export class SharedRead<Value> {
  readonly #read: () => Promise<Value>;
  readonly #maxAgeMs: number;
  #latest: Promise<Value> | undefined;
  #startedMs = Number.NEGATIVE_INFINITY;

  constructor(read: () => Promise<Value>, { maxAgeMs }: { readonly maxAgeMs: number }) {
    this.#read = read;
    this.#maxAgeMs = maxAgeMs;
  }

  /** Reads, unless a read under way or done began less than `maxAgeMs` ago. */
  get(): Promise<Value> {
    const nowMs = performance.now();
    if (this.#latest === undefined || nowMs - this.#startedMs >= this.#maxAgeMs) {
      this.#startedMs = nowMs;
      this.#latest = this.#read();
    }
    return this.#latest;
  }
}
