/**
 * Calls an implementation of a Connect service in process: the way REST, the
 * Connect JSON face and the data plane reach what gRPC reaches through the
 * library's handlers. The chain of interceptors is the library's own
 * (`Interceptor` of `@connectrpc/connect`), composed once per method, so an
 * interceptor sees the same request whichever face it came from.
 *
 * Everything expensive is put off: request headers stay Node's own object
 * until somebody asks for more than one of them, and there is no timer unless
 * the caller gave a timeout.
 *
 * Whatever is thrown comes out as a `Problem`.
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
import { LazyHeaders } from "./headers.ts";
import { createInnermost, notImplemented, scopeKey } from "./innermost.ts";
import { Scope } from "./scope.ts";
import { StreamCall } from "./streamcall.ts";
import { CallValues } from "./values.ts";

/** A service and what implements it; made by `register`, which checks that the two fit. */
export interface ServiceRegistration {
  readonly service: DescService;
  readonly implementation: Partial<ServiceImpl<DescService>>;
  /** Largest message that its methods take. Default: that of the server. */
  readonly maxMessageBytes?: number;
}

/** Puts a service and its implementation together. A method left out answers `unimplemented`. */
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

/** What a call brings with it besides its message. Everything may be left out. */
export interface InvokeOptions {
  /** Headers of the request, as Node gives them or ready. */
  readonly header?: IncomingHttpHeaders | Headers;
  /** Aborts when the caller is gone. */
  readonly signal?: AbortSignal;
  /** After this long the call is answered with CALL_TIMEOUT and its signal aborts. */
  readonly timeoutMs?: number;
  /** What the face knows of the caller, for the interceptors. */
  readonly contextValues?: ContextValues;
  /** HTTP method of the request; default `POST`. */
  readonly requestMethod?: string;
  /** URL of the request; default the path of the RPC. */
  readonly url?: string;
}

/** The answer to a unary call. */
export interface UnaryResult<O extends DescMessage = DescMessage> {
  readonly message: MessageShape<O>;
  readonly header: Headers;
  readonly trailer: Headers;
}

/** The answers to a server-streaming call; the call starts when they are first asked for. */
export interface StreamResult<O extends DescMessage = DescMessage>
  extends AsyncIterable<MessageShape<O>> {
  /** Complete once the first message has come. */
  readonly header: Headers;
  /** Complete once the stream has ended. */
  readonly trailer: Headers;
}

export interface Invoker {
  /** Errors: a `Problem`, always; one of ROUTE_NOT_FOUND for a method nobody implements. */
  unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    message: MessageShape<I>,
    options?: InvokeOptions,
  ): Promise<UnaryResult<O>>;
  /** Errors come out of the iteration. Leaving the iteration ends the call. */
  stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    message: MessageShape<I>,
    options?: InvokeOptions,
  ): StreamResult<O>;
}

type Next = ReturnType<Interceptor>;

export interface InvokerOptions {
  readonly services: readonly ServiceRegistration[];
  /** The first one is the outermost. */
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
      // Another promise on top of this one would cost every call.
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

/** A call that may take longer than its caller allows, or fail with what is no `Problem` yet. */
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

/** What the interceptors see. */
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
