/**
 * Request headers that cost nothing until they are used. A `Headers` object
 * costs more than a microsecond to fill, and most calls look at one or two
 * headers or none: `get` and `has` read Node's own object, everything else
 * builds the real `Headers` first.
 */
import type { IncomingHttpHeaders } from "node:http";

const NONE: IncomingHttpHeaders = Object.freeze({});

export class LazyHeaders implements Headers {
  readonly #source: IncomingHttpHeaders;
  #headers: Headers | undefined;

  /** @param source the headers as Node gives them: names in lower case. Default: none. */
  constructor(source: IncomingHttpHeaders = NONE) {
    this.#source = source;
  }

  get(name: string): string | null {
    if (this.#headers !== undefined) {
      return this.#headers.get(name);
    }
    const key = name.toLowerCase();
    const value = Object.hasOwn(this.#source, key) ? this.#source[key] : undefined;
    if (value === undefined) {
      return null;
    }
    return Array.isArray(value) ? value.join(", ") : value;
  }

  has(name: string): boolean {
    return this.get(name) !== null;
  }

  append(name: string, value: string): void {
    this.#all().append(name, value);
  }

  delete(name: string): void {
    this.#all().delete(name);
  }

  set(name: string, value: string): void {
    this.#all().set(name, value);
  }

  getSetCookie(): string[] {
    return this.#all().getSetCookie();
  }

  forEach(callback: (value: string, key: string, parent: Headers) => void): void {
    for (const [key, value] of this.#all()) {
      callback(value, key, this);
    }
  }

  entries(): ReturnType<Headers["entries"]> {
    return this.#all().entries();
  }

  keys(): ReturnType<Headers["keys"]> {
    return this.#all().keys();
  }

  values(): ReturnType<Headers["values"]> {
    return this.#all().values();
  }

  [Symbol.iterator](): ReturnType<Headers["entries"]> {
    return this.entries();
  }

  #all(): Headers {
    if (this.#headers === undefined) {
      const headers = new Headers();
      for (const [name, value] of Object.entries(this.#source)) {
        // HTTP/2 pseudo-headers such as `:path` are not headers to a caller.
        if (value !== undefined && !name.startsWith(":")) {
          for (const item of Array.isArray(value) ? value : [value]) {
            headers.append(name, item);
          }
        }
      }
      this.#headers = headers;
    }
    return this.#headers;
  }
}
