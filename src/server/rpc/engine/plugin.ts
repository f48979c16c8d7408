/**
 * The routes of all RPCs on one Fastify instance:
 * `POST /<package.Service>/<Method>`.
 *
 * `fastifyConnectPlugin` mounts them, and serves streams, gRPC-Web, binary Connect,
 * Connect GET and gRPC in JSON. Around it, each route hands it the body of its
 * request bounded and scanned; unary calls of gRPC, and of Connect in JSON, go to the
 * invoker instead, which is several times faster.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { constants, type ServerHttp2Stream } from "node:http2";
import { createRegistry, type DescMethodUnary, type Registry } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ContextValues,
  createContextValues,
  type Interceptor,
} from "@connectrpc/connect";
import type { UniversalHandler, UniversalServerRequest } from "@connectrpc/connect/protocol";
import { fastifyConnectPlugin } from "@connectrpc/connect-fastify";
import { compressionGzip } from "@connectrpc/connect-node";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { problem, toProblem } from "../../../errors.ts";
import { boundedChunks, discard } from "../../http/body.ts";
import { DEFAULT_MAX_BODY_BYTES } from "../../http/body-limits.ts";
import { sendFrameworkError } from "../../http/framework.ts";
import type { ReadLarge } from "../../http/large-json.ts";
import { lingerAfterRefusal } from "../../http/lingering-close.ts";
import { isDefect } from "../../http/problem.ts";
import { logOf, requestLog } from "../../http/request-log.ts";
import { Scope } from "./call-context.ts";
import { arrivalOf } from "./caller.ts";
import {
  createConnectJsonHandler,
  isConnectJson,
  sendConnectProblem,
  unreadable,
} from "./connect.ts";
import { clampTimeout, createDeadlineInterceptor, untilAborted } from "./deadline.ts";
import { createErrorsInterceptor, type ReportProblem } from "./errors.ts";
import { createGrpcHandler, isGrpc } from "./grpc.ts";
import type { Invoker, ServiceRegistration } from "./invoker.ts";
import { isWhole, type RewriteLarge, type ScanOptions, scannedBody, scanQuery } from "./scan.ts";

/**
 * How much longer a message may become when its arguments become a body: numbers of 8 bytes are
 * longer in JSON, and bytes in JSON are base64. What a caller sends is bounded before (`scan.ts`).
 */
const MAX_GROWTH_FACTOR = 3;

interface RpcOptions {
  readonly services: readonly ServiceRegistration[];
  /** The same chain as the invoker's; the plugin adds the conversion of errors around it. */
  readonly interceptors: readonly Interceptor[];
  /** Created for the same services. */
  readonly invoker: Invoker;
  /** Largest message that is read. Default: 4 MiB, as in gRPC. */
  readonly readMaxBytes?: number;
  /** Aborts all calls under way through the library when the server stops, with their error. */
  readonly shutdownSignal?: AbortSignal;
  /** The request's context for the interceptors. */
  readonly contextValues?: (req: FastifyRequest) => ContextValues;
  /** Reads large messages in JSON. Default: none is large. */
  readonly readLarge?: ReadLarge | undefined;
  /** Rewrites large messages of the other protocols. Default: none is large. */
  readonly rewriteLarge?: RewriteLarge | undefined;
  /** Called with the errors of calls through the library. Default: logs defects. */
  readonly report?: ReportProblem;
}

/** The Fastify plugin, for a server that leaves bodies to handlers. */
export async function rpcPlugin(app: FastifyInstance, options: RpcOptions): Promise<void> {
  const { readMaxBytes = DEFAULT_MAX_BODY_BYTES } = options;
  app.setErrorHandler(sendFrameworkError);
  const report: ReportProblem =
    options.report ??
    ((found, { url, contextValues }) => {
      if (isDefect(found)) {
        const { requestId: reqId } = arrivalOf(contextValues);
        // A query may hold the whole message.
        const path = url.split("?", 1)[0];
        logOf(app).error({ err: found.cause ?? found, url: path, reqId }, found.rawMessage);
      }
    });
  // What `google.protobuf.Any` may hold in JSON.
  const registry = createRegistry(...options.services.map(({ service }) => service.file));
  const routes = new Map<string, { readonly methods: string[]; readonly serve: Around }>();
  app.addHook("onRoute", (route) => {
    const { methods, serve } = routes.get(route.url) ?? {};
    if (methods !== undefined && serve !== undefined) {
      // The others are refused as they are everywhere (`http/paths.ts`).
      route.method = methods;
      route.handler = serve(route.handler.bind(app) as Handle);
    }
  });
  const values = new WeakMap<FastifyRequest, ContextValues>();
  const onBroken = (err: unknown): void =>
    logOf(app).debug({ err }, "the caller of an RPC has gone in the middle of its answer");
  await app.register(fastifyConnectPlugin, {
    acceptCompression: [compressionGzip],
    interceptors: [
      createErrorsInterceptor(report),
      createDeadlineInterceptor(),
      ...options.interceptors,
    ],
    // As strict as the fast path. The library writes all empty fields or, with the lists, none.
    jsonOptions: { ignoreUnknownFields: false, alwaysEmitImplicit: true, registry },
    readMaxBytes,
    ...(options.shutdownSignal === undefined ? {} : { shutdownSignal: options.shutdownSignal }),
    contextValues: (req) => values.get(req) as ContextValues,
    routes: (router) => {
      for (const { service, implementation, maxMessageBytes = readMaxBytes } of options.services) {
        const first = router.handlers.length;
        router.service(service, implementation, {
          readMaxBytes: maxMessageBytes * MAX_GROWTH_FACTOR,
        });
        for (const handler of router.handlers.splice(first)) {
          const { method, requestPath, allowedMethods } = handler;
          router.handlers.push(untilDeadline(handler, onBroken));
          const serve = around(method, maxMessageBytes, { ...options, registry, values, report });
          routes.set(requestPath, { methods: [...allowedMethods], serve });
        }
      }
    },
  });
}

type Handle = (req: FastifyRequest, reply: FastifyReply) => unknown;
/** What is done with a request of a route before the library's handler, or instead of it. */
type Around = (viaLibrary: Handle) => Handle;

/** What is done with the requests of a method. */
function around(
  method: UniversalHandler["method"],
  readMaxBytes: number,
  {
    registry,
    values,
    invoker,
    contextValues,
    readLarge,
    rewriteLarge,
    report,
  }: RpcOptions & {
    readonly registry: Registry;
    readonly report: ReportProblem;
  } & Pick<HandOver, "values">,
): Around {
  const scan: ScanOptions = { input: method.input, readMaxBytes, rewriteLarge };
  const viaInvoker =
    method.methodKind === "unary"
      ? createConnectJsonHandler(method as DescMethodUnary, {
          invoker,
          readMaxBytes,
          contextValues,
          readLarge,
          registry,
        })
      : undefined;
  const viaGrpc =
    method.methodKind === "unary"
      ? createGrpcHandler(method as DescMethodUnary, { invoker, scan, contextValues, report })
      : undefined;
  return (viaLibrary) => (req, reply) => {
    const refused = req.method === "POST" ? unreadable(req) : undefined;
    if (refused !== undefined) {
      return sendConnectProblem(reply, refused);
    }
    if (viaInvoker !== undefined && isConnectJson(req)) {
      return viaInvoker(req, reply);
    }
    return handOver(req, reply, { scan, method, values, contextValues, viaGrpc, viaLibrary });
  };
}

interface HandOver {
  readonly scan: ScanOptions;
  readonly method: UniversalHandler["method"];
  /** Where the library's handler finds the context of a request. */
  readonly values: WeakMap<FastifyRequest, ContextValues>;
  readonly contextValues: RpcOptions["contextValues"];
  /** The handler of unary gRPC; undefined for other methods. */
  readonly viaGrpc: ReturnType<typeof createGrpcHandler> | undefined;
  readonly viaLibrary: Handle;
}

/** Hands a request over to its handler, that of the library with its body bounded and scanned. */
async function handOver(
  req: FastifyRequest,
  reply: FastifyReply,
  { scan, method, values, contextValues, viaGrpc, viaLibrary }: HandOver,
): Promise<unknown> {
  try {
    requireAuthority(req);
    if (req.method === "GET") {
      await scanQuery(req, scan);
    }
  } catch (thrown) {
    return sendConnectProblem(reply, toProblem(thrown));
  }
  reply.hijack();
  // The library would hear of no end of what has ended before.
  if (hasEnded(req)) {
    return;
  }
  endWithAnswer(req.raw, reply.raw);
  try {
    if (viaGrpc !== undefined && isGrpc(req)) {
      return await viaGrpc(req, reply);
    }
    values.set(req, contextValues?.(req) ?? createContextValues());
    const { methodKind } = method;
    // A streaming client may send indefinitely; the library bounds each message.
    const whole = methodKind === "unary" || methodKind === "server_streaming";
    // What is left of a body that is refused is thrown away later; its connection may live on.
    const arriving: AsyncIterable<Uint8Array> = req.raw.iterator({ destroyOnReturn: false });
    const chunks = whole ? boundedChunks(req, arriving) : arriving;
    req.body = req.method === "GET" ? chunks : scannedBody(req, chunks, scan);
    // Its promise for a whole answer never resolves.
    await viaLibrary(req, reply);
  } catch (err) {
    requestLog(req).debug({ err }, "the caller of an RPC has gone");
  }
  // Errors of calls are answers; this is the end of a connection, so there is nobody to answer.
  if (!reply.raw.writableEnded) {
    reply.raw.destroy();
  }
}

/** Of the library the authority is a part of the URL of a request. Throws REQUEST_INVALID. */
function requireAuthority({ raw }: FastifyRequest): void {
  const authority = "authority" in raw ? String(raw.authority) : raw.headers.host;
  if (authority === undefined || !URL.canParse(raw.url ?? "", `http://${authority}`)) {
    throw problem(
      "REQUEST_INVALID",
      "the request names no host: send the header Host, or :authority",
    );
  }
}

/** Whether the stream or the connection of a request is gone. */
function hasEnded({ raw }: FastifyRequest): boolean {
  return "stream" in raw ? (raw.stream as ServerHttp2Stream).destroyed : raw.socket.destroyed;
}

/**
 * The library's handler of a method, for calls that end at their deadline while their message
 * arrives, too. The body of a whole message passes on unpacked, and perhaps rewritten.
 */
function untilDeadline(
  handler: UniversalHandler,
  onBroken: (cause: unknown) => void,
): UniversalHandler {
  const call = async (request: UniversalServerRequest) => {
    const header = new Headers(request.header);
    const timeoutMs = clampTimeout(header);
    // It aborts for the deadline before the library does.
    const scope = new Scope(request.signal, timeoutMs);
    // Aborts at the end of each exchange, whether it was answered or not.
    request.signal.addEventListener("abort", () => scope[Symbol.dispose]());
    const { signal } = scope;
    if (isWhole({ headers: { "content-type": header.get("content-type") ?? "" } })) {
      header.delete("content-length");
      if (header.get("content-encoding") === "gzip") {
        header.delete("content-encoding");
      }
    }
    const arriving = request.body as AsyncIterable<Uint8Array>;
    const body = timeoutMs === undefined ? arriving : untilAborted(arriving, signal);
    const response = await handler({ ...request, signal, header, body });
    return response.body === undefined
      ? response
      : { ...response, body: untilBroken(response.body, onBroken) };
  };
  return Object.assign(call, {
    service: handler.service,
    method: handler.method,
    requestPath: handler.requestPath,
    supportedContentType: handler.supportedContentType,
    protocolNames: handler.protocolNames,
    allowedMethods: handler.allowedMethods,
  });
}

/**
 * Passes an answer on. Errors of calls are answers, so what is thrown here is a caller who has
 * gone, and the plugin writes nothing about one whose connection was reset.
 */
function untilBroken(
  body: AsyncIterable<Uint8Array>,
  onBroken: (cause: unknown) => void,
): AsyncIterable<Uint8Array> {
  const chunks = body[Symbol.asyncIterator]();
  const broken = (cause: unknown): never => {
    onBroken(cause);
    throw new ConnectError("the connection broke", Code.Aborted, undefined, undefined, cause);
  };
  const iterator: AsyncIterator<Uint8Array> = {
    next: () => chunks.next().catch(broken),
    return: (value) => chunks.return?.(value) ?? Promise.resolve({ done: true, value }),
    throw: (failedWrite: unknown) => {
      Object.assign(failedWrite as object, { code: "ECONNRESET" });
      return chunks.throw?.(failedWrite) ?? Promise.reject(failedWrite);
    },
  };
  return { [Symbol.asyncIterator]: () => iterator };
}

/**
 * Ends a request with its answer: nobody reads what the caller still sends of a message that was
 * refused. Over HTTP/2 (RFC 9113, section 8.1) what has arrived would hold the session, so a stream
 * of gRPC is reset, which its clients expect, and that of others is read to its end. Over HTTP/1.1
 * the rest is thrown away, because the connection's next request comes behind it.
 */
function endWithAnswer(req: IncomingMessage, res: ServerResponse): void {
  if ("stream" in req) {
    const stream = req.stream as ServerHttp2Stream;
    if (!req.headers["content-type"]?.startsWith("application/grpc")) {
      stream.once("wantTrailers", () => lingerAfterRefusal(req));
      return;
    }
    // The trailers go out in this turn of the event loop.
    stream.once("wantTrailers", () => {
      setImmediate(() => {
        if (!req.complete) {
          stream.close(constants.NGHTTP2_NO_ERROR);
          stream.destroy();
        }
      });
    });
  } else {
    res.once("finish", () => discard(req));
  }
}
