/**
 * The routes of all RPCs on one Fastify instance:
 * `POST /<package.Service>/<Method>`.
 *
 * Unary Connect calls in JSON go through the invoker. All others (gRPC,
 * gRPC-Web, binary Connect, Connect streams, Connect GET) go to the library's
 * handler of the same method, on the same route, by content type.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { constants, type ServerHttp2Stream } from "node:http2";
import { createRegistry, type DescMethodUnary, type DescService } from "@bufbuild/protobuf";
import { type ContextValues, createConnectRouter, type Interceptor } from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import {
  compressionGzip,
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from "@connectrpc/connect-node";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { toProblem } from "../../../errors.ts";
import { boundedChunks, discard } from "../../http/body.ts";
import { sendFrameworkError } from "../../http/framework.ts";
import type { ReadLarge } from "../../http/large-json.ts";
import { lingerAfterRefusal } from "../../http/lingering-close.ts";
import { isDefect } from "../../http/problem.ts";
import { logOf, requestLog } from "../../http/request-log.ts";
import { arrivalOf } from "./caller.ts";
import {
  createConnectJsonHandler,
  isConnectJson,
  sendConnectProblem,
  unreadable,
} from "./connect.ts";
import { clampTimeout, createDeadlineInterceptor, untilAborted } from "./deadline.ts";
import { createErrorsInterceptor, type ReportProblem } from "./errors.ts";
import type { Invoker, ServiceRegistration } from "./invoker.ts";
import { isWhole, type RewriteLarge, type ScanOptions, scannedBody, scanQuery } from "./scan.ts";
import { Scope } from "./scope.ts";

/** RPC message that the engine reads by default, which is gRPC's own. */
const DEFAULT_READ_MAX_BYTES = 4 * 1024 * 1024;

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
  const { readMaxBytes = DEFAULT_READ_MAX_BYTES, contextValues, invoker } = options;
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
  const router = createConnectRouter({
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
  });
  const limits = new Map<DescService, number>();
  for (const { service, implementation, maxMessageBytes = readMaxBytes } of options.services) {
    router.service(service, implementation, {
      readMaxBytes: maxMessageBytes * MAX_GROWTH_FACTOR,
    });
    limits.set(service, maxMessageBytes);
  }
  for (const handler of router.handlers) {
    const { method, requestPath: url } = handler;
    const scan: ScanOptions = {
      input: method.input,
      readMaxBytes: limits.get(method.parent) ?? readMaxBytes,
      rewriteLarge: options.rewriteLarge,
    };
    const viaLibrary = createLibraryHandler(handler, { contextValues, scan });
    const post = (serve: (req: FastifyRequest, reply: FastifyReply) => Promise<unknown>) =>
      app.post(url, (req, reply) => {
        const refused = unreadable(req);
        return refused === undefined ? serve(req, reply) : sendConnectProblem(reply, refused);
      });
    if (method.methodKind === "unary") {
      const viaInvoker = createConnectJsonHandler(method as DescMethodUnary, {
        invoker,
        readMaxBytes: scan.readMaxBytes,
        contextValues,
        readLarge: options.readLarge,
        registry,
      });
      post((req, reply) => (isConnectJson(req) ? viaInvoker : viaLibrary)(req, reply));
    } else {
      post(viaLibrary);
    }
    if (handler.allowedMethods.includes("GET")) {
      app.get(url, { exposeHeadRoute: false }, async (req, reply) => {
        try {
          await scanQuery(req, scan);
        } catch (thrown) {
          return sendConnectProblem(reply, toProblem(thrown));
        }
        return viaLibrary(req, reply);
      });
    }
  }
}

function createLibraryHandler(
  handler: UniversalHandler,
  {
    contextValues,
    scan,
  }: { readonly contextValues: RpcOptions["contextValues"]; readonly scan: ScanOptions },
) {
  return async (req: FastifyRequest, reply: FastifyReply): Promise<void> => {
    reply.hijack();
    endWithAnswer(req.raw, reply.raw);
    for (const [name, value] of Object.entries(reply.getHeaders())) {
      if (value !== undefined) {
        reply.raw.setHeader(name, value);
      }
    }
    try {
      const universal = universalRequestFromNodeRequest(
        req.raw,
        reply.raw,
        undefined,
        contextValues?.(req),
      );
      const { methodKind } = handler.method;
      // A streaming client may send indefinitely; the library bounds each message.
      const whole = methodKind === "unary" || methodKind === "server_streaming";
      // What is left of a body that is refused is thrown away later; its connection may live on.
      const arriving: AsyncIterable<Uint8Array> = req.raw.iterator({ destroyOnReturn: false });
      const chunks = whole ? boundedChunks(req, arriving) : arriving;
      const body = req.method === "GET" ? chunks : scannedBody(req, chunks, scan);
      const header = new Headers(universal.header);
      const timeoutMs = clampTimeout(header);
      // It aborts for the deadline before the library does, while the message arrives too.
      using scope = new Scope(universal.signal, timeoutMs);
      // The library's promise for the whole answer never resolves.
      reply.raw.once("close", () => scope[Symbol.dispose]());
      const { signal } = scope;
      const request = {
        ...universal,
        signal,
        body: timeoutMs === undefined ? body : untilAborted(body, signal),
        header,
      };
      if (isWhole(req)) {
        // The body passes on unpacked, and perhaps rewritten.
        request.header.delete("content-length");
        if (request.header.get("content-encoding") === "gzip") {
          request.header.delete("content-encoding");
        }
      }
      await universalResponseToNodeResponse(await handler(request), reply.raw);
    } catch (err) {
      // Errors of calls are answers; this is an error of the connection, so there is nobody to answer.
      requestLog(req).debug({ err }, "an RPC's connection broke");
      reply.raw.destroy();
    }
  };
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
