import type { ContextKey, ContextValues } from "@connectrpc/connect";

/**
 * The context values of one call. The library's own make three functions for
 * each call and are looked up by names that change; of a few values, a list
 * is found faster.
 */
export class CallValues implements ContextValues {
  /** Keys and values in turns. */
  readonly #entries: unknown[] = [];

  get<T>({ id, defaultValue }: ContextKey<T>): T {
    const at = this.#entries.indexOf(id);
    return at < 0 ? defaultValue : (this.#entries[at + 1] as T);
  }

  set<T>({ id }: ContextKey<T>, value: T): this {
    const at = this.#entries.indexOf(id);
    if (at < 0) {
      this.#entries.push(id, value);
    } else {
      this.#entries[at + 1] = value;
    }
    return this;
  }

  delete({ id }: ContextKey<unknown>): this {
    const at = this.#entries.indexOf(id);
    if (at >= 0) {
      this.#entries.splice(at, 2);
    }
    return this;
  }
}
