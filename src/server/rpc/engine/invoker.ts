/**
 * The in-process invoker of Connect services: REST, Connect in JSON and the
 * data plane call through it the same implementations that gRPC calls through
 * the library's handlers. The chain of interceptors is the library's own
 * (`Interceptor` of `@connectrpc/connect`), composed once per method, so an
 * interceptor sees the same request over every protocol.
 *
 * Expensive work is deferred: request headers stay Node's own object while
 * they are only read, and there is no timer unless the caller sets a timeout.
 *
 * Every error is a `Problem`.
 */
import type { IncomingHttpHeaders } from "node:http";
import type {
  DescMessage,
  DescMethod,
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  Message,
  MessageShape,
} from "@bufbuild/protobuf";
import type {
  ContextValues,
  Interceptor,
  ServiceImpl,
  StreamRequest,
  StreamResponse,
  UnaryRequest,
} from "@connectrpc/connect";
import {
  CallValues,
  createInnermost,
  LazyHeaders,
  notImplemented,
  Scope,
  scopeKey,
} from "./call-context.ts";
import { untilAborted } from "./deadline.ts";

/** A service with its implementation, created by `register`, whose types match the two. */
export interface ServiceRegistration {
  readonly service: DescService;
  readonly implementation: Partial<ServiceImpl<DescService>>;
  /** Largest message that its methods take. Default: the server's limit. */
  readonly maxMessageBytes?: number;
}

/** Registers the implementation of a service. Missing methods answer `unimplemented`. */
export function register<S extends DescService>(
  service: S,
  implementation: Partial<ServiceImpl<S>>,
  options: Pick<ServiceRegistration, "maxMessageBytes"> = {},
): ServiceRegistration {
  return {
    service,
    implementation: implementation as Partial<ServiceImpl<DescService>>,
    ...options,
  };
}

/** The optional parameters of a call. */
interface InvokeOptions {
  /** Headers of the request, as Node's object or as `Headers`. */
  readonly header?: IncomingHttpHeaders | Headers;
  /** Aborts when the caller has gone. */
  readonly signal?: AbortSignal;
  /** After this time the call fails with CALL_TIMEOUT and its signal aborts. */
  readonly timeoutMs?: number;
  /** What is known about the caller, for the interceptors. */
  readonly contextValues?: ContextValues;
  /** HTTP method of the request. Default: `POST`. */
  readonly requestMethod?: string;
  /** URL of the request. Default: the path of the RPC. */
  readonly url?: string;
}

/** The answer to a unary call. */
interface UnaryResult<O extends DescMessage = DescMessage> {
  readonly message: MessageShape<O>;
  readonly header: Headers;
  readonly trailer: Headers;
}

/** The answers to a server-streaming call, which starts with the first read. */
interface StreamResult<O extends DescMessage = DescMessage> extends AsyncIterable<MessageShape<O>> {
  /** Complete once the first message has arrived. */
  readonly header: Headers;
  /** Complete once the stream has ended. */
  readonly trailer: Headers;
}

/** Invokes the methods of registered services. */
export interface Invoker {
  /** Every error is a `Problem`; ROUTE_NOT_FOUND for a method without implementation. */
  unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    message: MessageShape<I>,
    options?: InvokeOptions,
  ): Promise<UnaryResult<O>>;
  /** The iterator throws all errors. Leaving it ends the call. */
  stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    message: MessageShape<I>,
    options?: InvokeOptions,
  ): StreamResult<O>;
}

type Next = ReturnType<Interceptor>;

interface InvokerOptions {
  readonly services: readonly ServiceRegistration[];
  /** Outermost first. */
  readonly interceptors?: readonly Interceptor[];
}

/** Composes the chain of every unary and server-streaming method of the services. */
export function createInvoker({ services, interceptors = [] }: InvokerOptions): Invoker {
  const chains = new Map<DescMethod, Next>();
  for (const { service, implementation } of services) {
    for (const method of service.methods) {
      const innermost = createInnermost(method, implementation);
      chains.set(
        method,
        interceptors.reduceRight((next, interceptor) => interceptor(next), innermost),
      );
    }
  }
  const chainOf = (method: DescMethod) => {
    const chain = chains.get(method);
    if (chain === undefined) {
      throw notImplemented(method);
    }
    return chain;
  };

  function unary(method: DescMethodUnary, message: Message, options: InvokeOptions = {}) {
    const scope = new Scope(options.signal, options.timeoutMs);
    try {
      const req = requestOf(method, options, { scope, stream: false, message });
      const call = chainOf(method)(req);
      // Another promise around this one would cost every call.
      return call === scope.answer && scope.deadlineMs === undefined ? call : limited(call, scope);
    } catch (thrown) {
      scope[Symbol.dispose]();
      return Promise.reject(scope.failure(thrown));
    }
  }

  function stream(
    method: DescMethodServerStreaming,
    message: Message,
    options: InvokeOptions = {},
  ) {
    const open = () => new Scope(options.signal, options.timeoutMs);
    return new StreamCall(open, async (scope) => {
      const req = requestOf(method, options, { scope, stream: true, message: once(message) });
      return (await chainOf(method)(req)) as StreamResponse;
    });
  }

  return { unary, stream } as Invoker;
}

/** Applies the caller's timeout to a call and converts its errors. */
function limited<Answer>(call: Promise<Answer>, scope: Scope): Promise<Answer> {
  const failed = (thrown: unknown): never => {
    throw scope.failure(thrown);
  };
  if (scope.deadlineMs === undefined) {
    return call.catch(failed);
  }
  return scope
    .race(call)
    .catch(failed)
    .finally(() => scope[Symbol.dispose]());
}

/** The request as the interceptors see it. */
function requestOf(
  method: DescMethod,
  options: InvokeOptions,
  {
    scope,
    stream,
    message,
  }: { readonly scope: Scope } & (
    | Pick<UnaryRequest, "stream" | "message">
    | Pick<StreamRequest, "stream" | "message">
  ),
) {
  const { header } = options;
  return {
    stream,
    message,
    method,
    service: method.parent,
    requestMethod: options.requestMethod ?? "POST",
    url: options.url ?? `/${method.parent.typeName}/${method.name}`,
    header: header instanceof Headers ? header : new LazyHeaders(header),
    contextValues: options.contextValues ?? new CallValues(),
    signal: scope.signal,
    [scopeKey]: scope,
  } as UnaryRequest | StreamRequest;
}

async function* once(message: Message): AsyncGenerator<Message, void, undefined> {
  yield message;
}

// A server-streaming call through the invoker, which starts with its iteration and ends with its scope.

/** The call and its answers. */
class StreamCall implements AsyncIterable<Message> {
  readonly #open: () => Scope;
  readonly #start: (scope: Scope) => Promise<StreamResponse>;
  #response: StreamResponse | undefined;
  readonly #none = new Headers();

  constructor(open: () => Scope, start: (scope: Scope) => Promise<StreamResponse>) {
    this.#open = open;
    this.#start = start;
  }

  get header(): Headers {
    return this.#response?.header ?? this.#none;
  }

  get trailer(): Headers {
    return this.#response?.trailer ?? this.#none;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Message, void, undefined> {
    using scope = this.#open();
    try {
      this.#response = await scope.race(this.#start(scope));
      yield* untilAborted(this.#response.message, scope.signal);
    } catch (thrown) {
      throw scope.failure(thrown);
    }
  }
}
