/**
 * Cross-origin resource sharing (https://fetch.spec.whatwg.org/#http-cors-protocol):
 * which pages of other sites may call deployments from a browser. None, until
 * the operator names their origins.
 *
 * - A preflight is answered before anybody is asked for a token, because
 *   browsers send none with it. It says nothing but what the setting says.
 * - Credentials are never allowed: cookies and sessions stay out of it, and a
 *   page calls with a token, which it has to be given. So `*` gives pages no
 *   more than any program has that can reach the server.
 * - It is for calls of deployments alone. The platform's own paths, where
 *   people are signed in, answer pages of other sites as if nothing was set.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";

/** Origins such as `https://app.example.com`; `*` is every one. */
export type AllowedOrigins = readonly string[];

/** What browsers may send: headers of the data plane, Connect, gRPC-Web and W3C trace context. */
const REQUEST_HEADERS = [
  ...["Authorization", "Content-Type", "Idempotency-Key", "Prefer", "Last-Event-ID"],
  ...["Range", "If-Range", "If-None-Match", "Tessera-Deployment", "X-Request-Id"],
  ...["Connect-Protocol-Version", "Connect-Timeout-Ms", "Grpc-Timeout", "X-Grpc-Web"],
  ...["X-User-Agent", "Traceparent", "Tracestate"],
].join(", ");

/** What pages may read of an answer besides its type, length and dates. */
const RESPONSE_HEADERS = [
  ...["Location", "Retry-After", "Idempotent-Replayed", "Preference-Applied", "Tessera-Task-Id"],
  ...["X-Request-Id", "WWW-Authenticate", "Allow", "Content-Disposition", "Content-Length"],
  ...["Content-Range", "Accept-Ranges", "ETag", "Grpc-Status", "Grpc-Message"],
  "Grpc-Status-Details-Bin",
].join(", ");

const METHODS = "GET, HEAD, POST, PUT";

/** Two hours: no browser remembers a preflight longer. */
const MAX_AGE_S = "7200";

/** Whether pages of an origin may call. */
export function isAllowedOrigin(allowed: AllowedOrigins, origin: string | undefined): boolean {
  return origin !== undefined && (allowed.includes("*") || allowed.includes(origin));
}

/**
 * Answers what browsers ask for pages of these origins. Before everything that
 * may refuse a request, so that a page can read why.
 *
 * @param isForDeployment whether a request is a call of a deployment
 */
export function shareAcrossOrigins(
  app: FastifyInstance,
  allowed: AllowedOrigins,
  isForDeployment: (req: FastifyRequest) => boolean,
): void {
  app.addHook("onRequest", (req, reply, done) => {
    const { origin } = req.headers;
    if (!isForDeployment(req)) {
      done();
      return;
    }
    const isAnyone = allowed.includes("*");
    if (!isAnyone) {
      // Also where it is another one: a cache must not give this answer to others.
      set(reply, "vary", "Origin");
    }
    if (!isAllowedOrigin(allowed, origin)) {
      done();
      return;
    }
    set(reply, "access-control-allow-origin", isAnyone ? "*" : (origin ?? ""));
    if (!isPreflight(req)) {
      set(reply, "access-control-expose-headers", RESPONSE_HEADERS);
      done();
      return;
    }
    reply
      .code(204)
      .header("access-control-allow-methods", METHODS)
      .header("access-control-allow-headers", REQUEST_HEADERS)
      .header("access-control-max-age", MAX_AGE_S)
      .send();
  });
}

/** The headers that a browser would like to send, where it asks beforehand. */
export function preflightHeaders({ headers }: FastifyRequest): string[] {
  const asked = headers["access-control-request-headers"] ?? "";
  return asked.split(",").map((name) => name.trim().toLowerCase());
}

function isPreflight({ method, headers }: FastifyRequest): boolean {
  return method === "OPTIONS" && headers["access-control-request-method"] !== undefined;
}

/** For Fastify's answers, and for those that a library writes itself. */
function set(reply: FastifyReply, name: string, value: string): void {
  reply.header(name, value);
  reply.raw.setHeader(name, value);
}
