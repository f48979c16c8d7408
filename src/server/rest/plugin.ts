/**
 * REST transcoding: serves every RPC with a `google.api.http` annotation from
 * its descriptor, through an in-process call. There are no handlers for single
 * methods here.
 *
 * Paths below the literal segments that a template begins with (`/api/v1/tasks`) belong to
 * this plugin, which answers requests that fit no template with ROUTE_NOT_FOUND or
 * METHOD_NOT_ALLOWED. All other paths are left to the endpoints of services.
 */
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { ContextValues } from "@connectrpc/connect";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { problem, toProblem } from "../../errors.ts";
import { DEFAULT_MAX_BODY_BYTES } from "../http/body-limits.ts";
import { readDecoded } from "../http/decoded-body.ts";
import { disconnectSignal } from "../http/disconnect.ts";
import { sendFrameworkError } from "../http/framework.ts";
import type { CallOrigin, Invoke } from "../http/invoke.ts";
import type { LargeMessage, ReadLarge } from "../http/large-json.ts";
import { sendProblem } from "../http/problem.ts";
import { type Binding, compileBindings } from "./binding.ts";
import { preconditionStatus } from "./if-match.ts";
import { type Found, RouteTable } from "./path-matching.ts";
import type { Template } from "./path-template.ts";
import { bindRequest, isJson } from "./request.ts";
import { sendAnswer, sendStream } from "./response.ts";

interface RestOptions {
  readonly services: readonly DescService[];
  readonly invoke: Invoke;
  /** Largest body of a request to a method. Default 4 MiB, the usual limit for an RPC message. */
  readonly maxBodyBytes?: (method: DescMethod) => number;
  /** Reads large messages in JSON. Default: none is large. */
  readonly readLarge?: ReadLarge | undefined;
  /** Silence after which a Server-Sent Events stream gets a comment. Default 15 s, below the 30 s and 60 s of common proxies. */
  readonly keepAliveMs?: number;
  /**
   * Longest wait for a stream's first answer before the status is sent. After
   * that, an error can only be sent inside the stream. Default 1 s.
   */
  readonly firstAnswerMs?: number;
  /** The request's context for the interceptors; throws to refuse it before its body is read. */
  readonly contextValues?: (
    req: FastifyRequest,
    method: DescMethod,
  ) => ContextValues | Promise<ContextValues>;
}

/** The Fastify plugin, for a server that leaves bodies to handlers. Throws at start if a binding is wrong, or two match the same paths. */
export async function restPlugin(app: FastifyInstance, options: RestOptions): Promise<void> {
  const routes = new RouteTable<Binding>();
  const paths = new Set<string>();
  for (const route of compileBindings(options.services)) {
    routes.add(route);
    for (const path of mounts(route.template)) {
      paths.add(path);
    }
    if (route.method !== "*" && !app.supportedMethods.includes(route.method)) {
      app.addHttpMethod(route.method);
    }
  }
  app.setErrorHandler(sendFrameworkError);
  const handler = createHandler(routes, options);
  for (const url of paths) {
    app.route({ method: app.supportedMethods, url, handler, exposeHeadRoute: false });
  }
}

/** The Fastify paths for everything below the first literal segments of a template. */
function mounts({ segments, verb }: Template): string[] {
  const variable = segments.findIndex(({ kind }) => kind !== "literal");
  const literals = variable === -1 ? segments : segments.slice(0, variable);
  const texts = literals.map((each) => (each.kind === "literal" ? each.text : ""));
  const url = texts.map((text) => `/${text.replaceAll(":", "::")}`).join("");
  if (variable === -1 && verb !== undefined) {
    return [`${url}::${verb}`];
  }
  return url === "" ? ["/*"] : [url, `${url}/*`];
}

function createHandler(routes: RouteTable<Binding>, options: RestOptions) {
  const { maxBodyBytes = () => DEFAULT_MAX_BODY_BYTES } = options;
  return async (req: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const bodyless = req.method === "GET" || req.method === "HEAD";
    // Reads do not change with what they would be expected to be.
    const ifMatch = bodyless ? "" : (req.headers["if-match"] ?? "");
    try {
      const { binding, values, query } = findRoute(routes, req, reply);
      // Before the body is read, so that a refused caller need not send it.
      const identified = options.contextValues?.(req, binding.method);
      const contextValues = identified instanceof Promise ? await identified : identified;
      const body = bodyless ? EMPTY : await readDecoded(req, maxBodyBytes(binding.method));
      const contentType = req.headers["content-type"];
      const idempotencyKey = String(req.headers["idempotency-key"] ?? "");
      const reading = largeOf(binding, { body, contentType }, options.readLarge);
      const large = reading && (await reading);
      const parts = {
        values,
        query,
        body: large?.body ?? body,
        contentType,
        idempotencyKey,
        ifMatch,
      };
      const message = bindRequest(binding, parts);
      large?.restore(message);
      const origin: CallOrigin = {
        header: req.headers,
        signal: disconnectSignal(reply),
        requestMethod: req.method,
        url: req.url,
        contextValues,
      };
      const { method } = binding;
      if (method.methodKind === "unary") {
        const answer = await options.invoke.unary(method, message, origin);
        return sendAnswer(reply, binding, answer);
      }
      const answers = options.invoke.stream(method, message, origin);
      const { keepAliveMs, firstAnswerMs } = options;
      return await sendStream(req, reply, { binding, answers, keepAliveMs, firstAnswerMs });
    } catch (thrown) {
      const found = toProblem(thrown);
      const status = preconditionStatus(ifMatch, found);
      return sendProblem(reply, found, status && { status });
    }
  };
}

const EMPTY = new Uint8Array();

/** The message that the whole body is, if it takes arguments. */
function largeOf(
  { body: { kind, field }, method }: Binding,
  { body, contentType }: { readonly body: Uint8Array; readonly contentType: string | undefined },
  readLarge: ReadLarge | undefined,
): LargeMessage | Promise<LargeMessage> | undefined {
  const isMessage = kind === "json" && field === undefined && body.length > 0;
  return isMessage && isJson(contentType) ? readLarge?.(body, method.input) : undefined;
}

function findRoute(routes: RouteTable<Binding>, req: FastifyRequest, reply: FastifyReply) {
  const mark = req.url.indexOf("?");
  const path = mark === -1 ? req.url : req.url.slice(0, mark);
  const query = mark === -1 ? "" : req.url.slice(mark + 1);
  const found = find(routes, req.method === "HEAD" ? "GET" : req.method, path);
  const endless = "route" in found && found.route.target.method.methodKind === "server_streaming";
  if (endless && req.method === "HEAD") {
    reply.header("allow", "GET");
    throw problem("METHOD_NOT_ALLOWED", `${path} is a stream, which has no HEAD`);
  }
  if ("route" in found) {
    return { binding: found.route.target, values: found.values, query };
  }
  if (found.allow.length === 0) {
    throw problem("ROUTE_NOT_FOUND", `there is nothing at ${path}`);
  }
  const allow = found.allow.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method]));
  reply.header("allow", allow.join(", "));
  throw problem("METHOD_NOT_ALLOWED", `${path} takes ${allow.join(", ")}, not ${req.method}`);
}

function find(routes: RouteTable<Binding>, method: string, path: string): Found<Binding> {
  try {
    return routes.find(method, path);
  } catch (cause) {
    const message = `the path ${path} is not valid percent-encoded UTF-8`;
    throw problem("REQUEST_INVALID", message, { cause });
  }
}
