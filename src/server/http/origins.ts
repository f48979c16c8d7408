/**
 * Requests of pages from other origins, in two parts: which of them may call
 * (CORS), and which are refused (protection against CSRF).
 *
 * Cross-origin resource sharing (https://fetch.spec.whatwg.org/#http-cors-protocol):
 * pages of other sites may call deployments from a browser once the operator
 * names their origins.
 *
 * - Preflights are answered before authentication, because browsers send no
 *   token with them. The answer reveals only the setting.
 * - Credentials are never allowed: cookies and sessions do not apply, and a
 *   page needs a token of its own. So `*` gives pages no more access than any
 *   program that can reach the server.
 * - Only calls of deployments are shared. The platform's own paths, where
 *   people are signed in, answer pages of other sites as without the setting.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { problem } from "../../errors.ts";

/** Origins such as `https://app.example.com`; `*` stands for all. */
export type AllowedOrigins = readonly string[];

/** Headers that browsers may send: those of the data plane, Connect, gRPC-Web and W3C trace context. */
const REQUEST_HEADERS = [
  ...["Authorization", "Content-Type", "Idempotency-Key", "Prefer", "Last-Event-ID"],
  ...["Range", "If-Range", "If-None-Match", "Tessera-Deployment", "X-Request-Id"],
  ...["Connect-Protocol-Version", "Connect-Timeout-Ms", "Grpc-Timeout", "X-Grpc-Web"],
  ...["X-User-Agent", "Traceparent", "Tracestate"],
].join(", ");

/** Response headers that pages may read, in addition to the CORS-safelisted ones. */
const RESPONSE_HEADERS = [
  ...["Location", "Retry-After", "Idempotent-Replayed", "Preference-Applied", "Tessera-Task-Id"],
  ...["X-Request-Id", "WWW-Authenticate", "Allow", "Content-Disposition", "Content-Length"],
  ...["Content-Range", "Accept-Ranges", "ETag", "Grpc-Status", "Grpc-Message"],
  ...["Grpc-Status-Details-Bin", "Tessera-Pieces"],
].join(", ");

const METHODS = "GET, HEAD, POST, PUT";

/** How long a browser may cache a preflight; none caches one longer. */
const PREFLIGHT_MAX_AGE_SECONDS = 7_200;

/** Whether pages of an origin may call. */
export function isAllowedOrigin(allowed: AllowedOrigins, origin: string | undefined): boolean {
  return origin !== undefined && (allowed.includes("*") || allowed.includes(origin));
}

/**
 * Answers preflights and sets the CORS headers for these origins. It must come
 * before everything that may refuse a request, so that a page can read why.
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
      // Also for origins that are not allowed: a cache must not give this answer to others.
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
      .header("access-control-max-age", String(PREFLIGHT_MAX_AGE_SECONDS))
      .send();
  });
}

/** The headers that a browser asks for in a preflight. */
export function preflightHeaders({ headers }: FastifyRequest): string[] {
  const asked = headers["access-control-request-headers"] ?? "";
  return asked.split(",").map((name) => name.trim().toLowerCase());
}

function isPreflight({ method, headers }: FastifyRequest): boolean {
  return method === "OPTIONS" && headers["access-control-request-method"] !== undefined;
}

/** Sets a header on Fastify's answers and on those that a library writes itself. */
function set(reply: FastifyReply, name: string, value: string): void {
  reply.header(name, value);
  reply.raw.setHeader(name, value);
}

/*
 * Protection against cross-site request forgery (CSRF). Without a token, every
 * program that can reach the server may call it; any page in a browser on the
 * same machine could then call a server on localhost. Browsers state where a
 * request comes from; one from another site that may change something is
 * refused. Other programs state nothing, and pages of the server itself state
 * its own origin.
 *
 * `Sec-Fetch-Site` (https://www.w3.org/TR/fetch-metadata/) decides if it is
 * present, because a proxy may change the host but not the origin; otherwise
 * `Origin` (RFC 6454, section 7) is compared with the requested host.
 */

/** Safe methods, which change nothing (RFC 9110, section 9.2.1). */
const SAFE = new Set(["GET", "HEAD", "OPTIONS"]);

/** Refuses unsafe requests from pages of other sites with ACCESS_DENIED, except from `allowed` origins. */
export function refuseCrossSite(app: FastifyInstance, allowed: AllowedOrigins): void {
  app.addHook("onRequest", (req, _reply, done) => {
    const isLet = SAFE.has(req.method) || isAllowedOrigin(allowed, req.headers.origin);
    if (isLet || !isCrossSite(originOf(req))) {
      done();
    } else {
      done(
        problem(
          "ACCESS_DENIED",
          "this request comes from a page of another site, and without a token any page could make a browser send it: serve with --token, and send the token, or name the page's origin with --cors",
        ),
      );
    }
  });
}

/** What a browser states about where a request comes from. */
export interface RequestOrigin {
  /** `Sec-Fetch-Site`. */
  readonly site: string | null | undefined;
  /** `Origin`. */
  readonly origin: string | null | undefined;
  /** The requested host and port. */
  readonly host: string;
}

/** True for a browser's request from a page of another site. */
export function isCrossSite({ site, origin, host }: RequestOrigin): boolean {
  if (site !== undefined && site !== null) {
    return site !== "same-origin" && site !== "none";
  }
  return origin !== undefined && origin !== null && hostOf(origin) !== host.toLowerCase();
}

/** True for the HTTP methods that change nothing. */
export function isSafe(method: string): boolean {
  return SAFE.has(method);
}

function originOf({ headers, host }: FastifyRequest): RequestOrigin {
  const site = headers["sec-fetch-site"];
  return { site: Array.isArray(site) ? site[0] : site, origin: headers.origin, host };
}

/** Host and port of an origin; undefined for `null` and invalid ones. */
function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host : undefined;
}
