/** The context of one call, as its implementation sees it: request, headers, values. */

import type { IncomingHttpHeaders } from "node:http";
import type { DescMethod, DescService, Message } from "@bufbuild/protobuf";
import type {
  ContextKey,
  ContextValues,
  HandlerContext,
  StreamRequest,
  UnaryRequest,
  UnaryResponse,
} from "@connectrpc/connect";
import { copyOf, type Problem } from "../../../errors.ts";

type AnyRequest = UnaryRequest | StreamRequest;

/**
 * One object for the whole context, because each call has one; parts that are
 * rarely used are created on demand. It keeps the request with its message,
 * and its members are getters, which a spread into another object does not
 * copy.
 */
export class RpcContext implements HandlerContext {
  readonly #req: AnyRequest;
  readonly #deadlineMs: number | undefined;
  #responseHeader: Headers | undefined;
  #responseTrailer: Headers | undefined;

  /** @param deadlineMs when the call times out, in milliseconds since 1970; undefined: never. */
  constructor(req: AnyRequest, deadlineMs: number | undefined) {
    this.#req = req;
    this.#deadlineMs = deadlineMs;
  }

  get method(): DescMethod {
    return this.#req.method;
  }

  get service(): DescService {
    return this.#req.service;
  }

  get signal(): AbortSignal {
    return this.#req.signal;
  }

  /** A function that works without its context. */
  get timeoutMs(): () => number | undefined {
    const deadlineMs = this.#deadlineMs;
    return () => (deadlineMs === undefined ? undefined : deadlineMs - Date.now());
  }

  get requestMethod(): string {
    return this.#req.requestMethod;
  }

  get requestHeader(): Headers {
    return this.#req.header;
  }

  get responseHeader(): Headers {
    this.#responseHeader ??= new LazyHeaders();
    return this.#responseHeader;
  }

  get responseTrailer(): Headers {
    this.#responseTrailer ??= new LazyHeaders();
    return this.#responseTrailer;
  }

  /**
   * The error with the headers and trailers that the implementation has set before it, as Connect
   * has them in the answer to a unary call. An error may be thrown to several callers, so it is
   * copied.
   */
  withMetadata(found: Problem): Problem {
    if (this.#responseHeader === undefined && this.#responseTrailer === undefined) {
      return found;
    }
    const copy = copyOf(found);
    for (const [name, value] of this.#responseHeader ?? []) {
      copy.metadata.append(name, value);
    }
    for (const [name, value] of this.#responseTrailer ?? []) {
      copy.metadata.append(`trailer-${name}`, value);
    }
    return copy;
  }

  get protocolName(): string {
    return "connect";
  }

  get values(): ContextValues {
    return this.#req.contextValues;
  }

  get url(): string {
    return this.#req.url;
  }
}

/** The answer to a unary call, with the headers of its context; it must not be spread either. */
export class RpcAnswer implements UnaryResponse {
  readonly stream = false;
  readonly message: Message;
  readonly #context: RpcContext;

  constructor(message: Message, context: RpcContext) {
    this.message = message;
    this.#context = context;
  }

  get method(): UnaryResponse["method"] {
    return this.#context.method as UnaryResponse["method"];
  }

  get service(): DescService {
    return this.#context.service;
  }

  get header(): Headers {
    return this.#context.responseHeader;
  }

  get trailer(): Headers {
    return this.#context.responseTrailer;
  }
}

/**
 * The context values of one call. The library's own create three functions for
 * each call and look values up by names that change; for a few values, a list
 * is faster.
 */
export class CallValues implements ContextValues {
  /** Keys and values alternate. */
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

const NONE: IncomingHttpHeaders = Object.freeze({});

/**
 * Lazy request headers. A `Headers` object costs more than a microsecond to
 * fill, and most calls read two headers at most. So `get` and `has` read
 * Node's own object, and all other methods build the real `Headers` first.
 */
export class LazyHeaders implements Headers {
  readonly #source: IncomingHttpHeaders;
  #headers: Headers | undefined;

  /** @param source Node's own headers, with names in lower case. Default: no headers. */
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
