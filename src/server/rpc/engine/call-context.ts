/** What an implementation is told of the call that it answers. */
import type { DescMethod, DescService, Message } from "@bufbuild/protobuf";
import type {
  ContextValues,
  HandlerContext,
  StreamRequest,
  UnaryRequest,
  UnaryResponse,
} from "@connectrpc/connect";
import { LazyHeaders } from "./headers.ts";

type AnyRequest = UnaryRequest | StreamRequest;

/**
 * One object for all of it, because each call has one: what is asked for
 * seldom is made when it is. It keeps the request with its message, and its
 * members cannot be spread into another object.
 */
export class RpcContext implements HandlerContext {
  readonly #req: AnyRequest;
  readonly #deadlineMs: number | undefined;
  #responseHeader: Headers | undefined;
  #responseTrailer: Headers | undefined;

  /** @param deadlineMs when its time is up, in milliseconds since 1970; undefined: no limit. */
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

  /** A function that can be taken out of its context. */
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

/** The answer to a unary call, with the headers of its context; not to be spread, either. */
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
