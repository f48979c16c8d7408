/** The context of one call, as its implementation sees it: request, headers, values. */
import type { IncomingHttpHeaders } from "node:http";
import {
  create,
  type DescMessage,
  type DescMethod,
  type DescService,
  isMessage,
  type Message,
  type MessageInitShape,
} from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ContextKey,
  type ContextValues,
  type HandlerContext,
  type Interceptor,
  type ServiceImpl,
  type StreamRequest,
  type StreamResponse,
  type UnaryRequest,
  type UnaryResponse,
} from "@connectrpc/connect";
import { copyOf, type Problem, problem } from "../../../errors.ts";
import { MAX_TIMER_MS } from "../../../time/alarm.ts";
import { raceAbort } from "../../../time/race.ts";
import { failureOf, timedOut } from "./deadline.ts";

type AnyRequest = UnaryRequest | StreamRequest;

/**
 * One object for the whole context, because each call has one; parts that are
 * rarely used are created on demand. It keeps the request with its message,
 * and its members are getters, which a spread into another object does not
 * copy.
 */
class RpcContext implements HandlerContext {
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
class RpcAnswer implements UnaryResponse {
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

// The lifetime of one call in process: its abort signal, its deadline and the
// listener for its end; and the innermost link of the invoker's chain, which
// calls the implementation.

/** The key of the scope in a request; interceptors keep it when they pass on a changed copy. */
export const scopeKey = Symbol("scope of the call");

/** The scope of a call in process; undefined for calls through the library's handlers. */
export function scopeOf(req: AnyRequest): Scope | undefined {
  return (req as AnyRequest & { readonly [scopeKey]?: Scope })[scopeKey];
}

type Next = ReturnType<Interceptor>;
type Init = MessageInitShape<DescMessage>;
type Unary = (message: Message, context: HandlerContext) => Init | Promise<Init>;
type ServerStreaming = (message: Message, context: HandlerContext) => AsyncIterable<Init>;

/** Creates the last `next` of a method's chain of interceptors. */
export function createInnermost(
  method: DescMethod,
  implementation: Partial<ServiceImpl<DescService>>,
): Next {
  const own = implementation[method.localName];
  if (own === undefined) {
    return () => Promise.reject(notImplemented(method));
  }
  switch (method.methodKind) {
    case "unary": {
      const call = (own as Unary).bind(implementation);
      return (req) => {
        // The invoker has created it, and interceptors pass it on.
        const scope = scopeOf(req) as Scope;
        const context = new RpcContext(req, scope.deadlineMs);
        const failed = (thrown: unknown): never => {
          const found = context.withMetadata(scope.failure(thrown));
          scope.ended(found);
          throw found;
        };
        const answered = (output: Init) => {
          let message: Message;
          try {
            message = complete(method.output, output);
          } catch (thrown) {
            return failed(thrown);
          }
          scope.ended(undefined);
          return new RpcAnswer(message, context);
        };
        const output = call((req as UnaryRequest).message, context);
        const answer =
          output instanceof Promise
            ? output.then(answered, failed)
            : Promise.resolve(answered(output));
        scope.answer = answer;
        return answer;
      };
    }
    case "server_streaming": {
      const call = (own as ServerStreaming).bind(implementation);
      return async (req) => {
        const context = new RpcContext(req, scopeOf(req)?.deadlineMs);
        const input = await single((req as StreamRequest).message);
        return {
          stream: true,
          message: completeEach(method.output, call(input, context)),
          method,
          service: method.parent,
          header: context.responseHeader,
          trailer: context.responseTrailer,
        } as StreamResponse;
      };
    }
    default:
      return () => Promise.reject(notImplemented(method));
  }
}

/** The error for a method that is known but not served here. */
export function notImplemented(method: DescMethod): Problem {
  return problem("ROUTE_NOT_FOUND", `${method.parent.typeName}.${method.name} is not served here`, {
    code: Code.Unimplemented,
  });
}

function complete(desc: DescMessage, init: Init): Message {
  return isMessage(init, desc) ? init : create(desc, init);
}

async function* completeEach(
  desc: DescMessage,
  inits: AsyncIterable<Init>,
): AsyncGenerator<Message, void, undefined> {
  for await (const init of inits) {
    yield complete(desc, init);
  }
}

async function single(messages: AsyncIterable<Message>): Promise<Message> {
  for await (const message of messages) {
    return message;
  }
  throw new ConnectError("the call carries no message", Code.InvalidArgument);
}

/** Listens for the end of a call. */
export interface EndListener {
  /** Called with the error of a call that failed. */
  ended(found: Problem | undefined): void;
}

/** The scope of one call. */
export class Scope implements Disposable, EndListener {
  /** Aborts when the caller has gone or the deadline has passed. */
  readonly signal: AbortSignal;
  /** In milliseconds since 1970; undefined: no deadline. */
  readonly deadlineMs: number | undefined;
  /** Set by an interceptor; called once, at the end of the call. */
  listener: EndListener | undefined;
  /** The answer of the implementation; the caller sees the error that it rejects with. */
  answer: Promise<unknown> | undefined;
  readonly #release: (() => void) | undefined;

  constructor(caller: AbortSignal | undefined, timeoutMs: number | undefined) {
    if (timeoutMs === undefined) {
      this.signal = caller ?? new AbortController().signal;
      return;
    }
    const controller = new AbortController();
    const limitMs = Math.max(0, Math.min(timeoutMs, MAX_TIMER_MS));
    this.deadlineMs = Date.now() + limitMs;
    const timer = setTimeout(() => {
      const found = timedOut(limitMs);
      controller.abort(found);
      // The caller is answered now, whatever the implementation does.
      this.ended(found);
    }, limitMs);
    this.signal = controller.signal;
    // Not `AbortSignal.any`: with a listener it would live as long as the caller's connection.
    const follow = () => controller.abort(caller?.reason);
    if (caller?.aborted) {
      follow();
    } else {
      caller?.addEventListener("abort", follow);
    }
    this.#release = () => {
      clearTimeout(timer);
      caller?.removeEventListener("abort", follow);
    };
  }

  /** The promise, or a rejection as soon as the signal aborts. */
  race<T>(promise: Promise<T>): Promise<T> {
    return raceAbort(promise, this.signal);
  }

  /** The caller's error for anything thrown in the call. */
  failure(thrown: unknown): Problem {
    return failureOf(thrown, this.signal);
  }

  /** Notifies the listener of the end of the call; only the first call has an effect. */
  ended(found: Problem | undefined): void {
    const { listener } = this;
    this.listener = undefined;
    listener?.ended(found);
  }

  [Symbol.dispose](): void {
    this.#release?.();
  }
}
