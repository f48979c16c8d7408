/**
 * Where a request goes and where it comes from: its host, and the origin of the page that sends it.
 *
 * The host that a request asks for is checked before anything is decided by it:
 * routing, the organization and the deployment all depend on it, and so does
 * what a proxy or a cache before this server took the request for.
 *
 * - A request names one host: one `Host` (RFC 9112, section 3.2), an absolute
 *   target that agrees with it, and over HTTP/2 an `:authority` that agrees
 *   with `host` (RFC 9113, section 8.3.1). Anything else is 400.
 * - A platform with a public address serves its own hosts and no others. A page
 *   that lets its name point here would otherwise be of the same origin as what
 *   it asks for. Other hosts are 421 (RFC 9110, section 15.5.20), except for
 *   probes, whose senders know only addresses.
 */
import type { IncomingMessage } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { problem } from "../errors.ts";
import { appOf, organizationOfHost } from "../hosting/hosts.ts";
import { sendProblem } from "./http/problem.ts";
import { hasUpgrade } from "./http/upgrade.ts";

/** The hosts of a platform with a public address. */
interface OwnHosts {
  /** Names at which the platform and this node are reached, without ports. */
  readonly names: readonly string[];
  readonly appsDomain: string | undefined;
  readonly platformDomain: string | undefined;
}

/** Paths that answer on every host. */
const PROBES = new Set(["/livez", "/healthz", "/readyz"]);

/** Refuses requests that name several hosts, and with `own` those for other hosts. */
export function refuseOtherHosts(app: FastifyInstance, own: OwnHosts | undefined): void {
  const names = new Set(own?.names.map(hostnameOf));
  const isOwn = (req: FastifyRequest): boolean => {
    const name = hostnameOf(req.host);
    return (
      own === undefined ||
      names.has(name) ||
      name === own.platformDomain ||
      (own.appsDomain !== undefined && appOf(name, own.appsDomain) !== undefined) ||
      (own.platformDomain !== undefined &&
        organizationOfHost(name, own.platformDomain) !== undefined) ||
      isLoopback(name) ||
      name === localAddress(req.raw)
    );
  };
  app.addHook("onRequest", (req, reply, done) => {
    const fault = faultOfHost(req.raw);
    if (fault !== undefined) {
      sendProblem(reply, problem("REQUEST_INVALID", fault));
    } else if (!isOwn(req) && !PROBES.has(req.url.split("?", 1)[0] ?? "")) {
      const asked = JSON.stringify(req.host.slice(0, 255));
      const message = `this server does not serve the host ${asked}: ask at the platform's own address`;
      sendProblem(reply, problem("REQUEST_INVALID", message), { status: 421 });
    } else {
      done();
    }
  });
}

/** What is wrong with the hosts that a request names; undefined when it names one. */
function faultOfHost({ rawHeaders, headers, url = "" }: IncomingMessage): string | undefined {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    // Most names are told apart by their length.
    count += name.length === 4 && name.toLowerCase() === "host" ? 1 : 0;
  }
  if (count > 1) {
    return "the request has more than one Host header: send one";
  }
  const { host = "", ":authority": authority } = headers;
  if (count === 1 && typeof authority === "string" && !isSame(authority, host)) {
    return "the request's :authority and its host header differ: send one of them, or the same";
  }
  if (url.startsWith("/")) {
    return undefined;
  }
  const target = /^https?:\/\/(?:[^/?#@]*@)?([^/?#]*)/i.exec(url)?.[1];
  return target === undefined || isSame(target, host)
    ? undefined
    : "the request's absolute target and its Host header name different hosts";
}

/** Whether two hosts are the same, with the port of http left out or not. */
function isSame(one: string, other: string): boolean {
  const plain = (host: string) => host.toLowerCase().replace(/:(?:80)?$/, "");
  return one === other || plain(one) === plain(other);
}

/** The name or address of a host, without its port and brackets. */
function hostnameOf(host: string): string {
  const name = host.toLowerCase();
  const address = /^\[([^\]]*)\](?::\d+)?$/.exec(name)?.[1];
  // An address of IPv6 without brackets has no port.
  return address ?? (/:.*:/.test(name) ? name : name.replace(/:\d+$/, "").replace(/\.$/, ""));
}

/** Names of this machine for itself; browsers resolve none of them elsewhere (RFC 6761, section 6.3). */
function isLoopback(name: string): boolean {
  return (
    name === "localhost" ||
    name.endsWith(".localhost") ||
    name === "::1" ||
    /^127(?:\.\d{1,3}){3}$/.test(name)
  );
}

/** The address of this machine that the request came to, which is what a probe asks for. */
function localAddress({ socket }: IncomingMessage): string | undefined {
  return socket.localAddress?.replace(/^::ffff:(?=[\d.]+$)/, "");
}

// Requests of pages from other origins, in two parts: which of them may call
// (CORS), and which are refused (protection against CSRF).
//
// Cross-origin resource sharing (https://fetch.spec.whatwg.org/#http-cors-protocol):
// pages of other sites may call deployments from a browser once the operator
// names their origins, and a deployment on its own host once its author does.
//
// - Preflights are answered before authentication, because browsers send no
//   token with them. The answer reveals only what the setting, or the author, says.
// - The operator's setting never allows credentials: cookies and sessions do
//   not apply, and a page needs a token of its own. So `*` gives pages no more
//   access than any program that can reach the server. An author may allow
//   them: on a deployment's host nobody is signed in to the platform.
// - Only calls of deployments are shared. The platform's own paths, where
//   people are signed in, answer pages of other sites as without the setting.

/** Origins such as `https://app.example.com`; `*` stands for all. */
export type AllowedOrigins = readonly string[];

/** Headers that browsers may send in any case: those of the data plane, Connect, gRPC-Web and tracing. */
const REQUEST_HEADERS = [
  ...["Authorization", "Content-Type", "Idempotency-Key", "Prefer", "Last-Event-ID", "Tessera-Key"],
  ...["Range", "If-Range", "If-None-Match", "Tessera-Deployment", "X-Request-Id"],
  ...["Tessera-Queue", "Tessera-Worker"],
  ...["Connect-Protocol-Version", "Connect-Timeout-Ms", "Grpc-Timeout", "X-Grpc-Web"],
  ...["X-User-Agent", "Traceparent", "Tracestate", "Baggage", "Sentry-Trace"],
].join(", ");

/** Response headers that pages may read, in addition to the CORS-safelisted ones. */
const RESPONSE_HEADERS = [
  ...["Location", "Retry-After", "Idempotent-Replayed", "Preference-Applied", "Tessera-Task-Id"],
  ...["X-Request-Id", "WWW-Authenticate", "Allow", "Content-Disposition", "Content-Length"],
  ...["Content-Range", "Accept-Ranges", "ETag", "Grpc-Status", "Grpc-Message"],
  ...["Grpc-Status-Details-Bin", "Tessera-Pieces", "Tessera-Worker"],
  ...["RateLimit", "RateLimit-Policy"],
].join(", ");

const METHODS = "GET, HEAD, POST, PUT";

/** How long a browser may cache a preflight; none caches one longer. */
const PREFLIGHT_MAX_AGE_SECONDS = 7_200;

/** Whether pages of an origin may call. */
function isAllowedOrigin(allowed: AllowedOrigins, origin: string | undefined): boolean {
  return origin !== undefined && (allowed.includes("*") || allowed.includes(origin));
}

/** What pages of one origin may do; what is absent is as the node has it. */
export interface Sharing {
  readonly credentials?: boolean | undefined;
  readonly methods?: readonly string[] | undefined;
  /** Besides the node's; `*` is any. */
  readonly headers?: readonly string[] | undefined;
  readonly exposedHeaders?: readonly string[] | undefined;
  readonly maxAgeSeconds?: number | undefined;
}

/** Whose pages may call deployments. */
export interface SharingOptions {
  /** Those that the operator names. */
  readonly allowed: AllowedOrigins;
  /** Whether a request is a call of a deployment. */
  readonly isForDeployment: (req: FastifyRequest) => boolean;
  /** What the author of the deployment on this host lets pages of an origin do; undefined: nothing. */
  readonly sharedByAuthor: (
    host: string,
    origin: string,
  ) => Sharing | undefined | Promise<Sharing | undefined>;
}

/** The operator names origins only; what their pages may send is theirs. */
const BY_OPERATOR: Sharing = { headers: ["*"] };

/**
 * Answers preflights and sets the CORS headers for origins whose pages may call. It must come
 * before everything that may refuse a request, so that a page can read why.
 */
export function shareAcrossOrigins(
  app: FastifyInstance,
  { allowed, isForDeployment, sharedByAuthor }: SharingOptions,
): void {
  const isAnyone = allowed.includes("*");
  const isListed = allowed.length > 0 && !isAnyone;
  app.addHook("onRequest", (req, reply, done) => {
    const { origin } = req.headers;
    if ((origin === undefined && !isListed) || !isForDeployment(req)) {
      done();
      return;
    }
    if (isListed) {
      // Also for origins that are not allowed: a cache must not give this answer to others.
      set(reply, "vary", "Origin");
    }
    if (origin === undefined || isAllowedOrigin(allowed, origin)) {
      answer(req, reply, origin === undefined ? undefined : BY_OPERATOR, { isAnyone, done });
      return;
    }
    const shared = sharedByAuthor(req.host, origin);
    if (shared instanceof Promise) {
      shared.then((found) => answer(req, reply, found, { isAnyone: false, done }), done);
    } else {
      answer(req, reply, shared, { isAnyone: false, done });
    }
  });
}

/** Sets the headers for pages of the request's origin; answers a preflight. */
function answer(
  req: FastifyRequest,
  reply: FastifyReply,
  shared: Sharing | undefined,
  { isAnyone, done }: { readonly isAnyone: boolean; readonly done: (err?: Error) => void },
): void {
  if (shared === undefined) {
    done();
    return;
  }
  const { credentials = false, methods, headers = [], exposedHeaders = [], maxAgeSeconds } = shared;
  const asked = isPreflight(req) ? req.headers["access-control-request-method"] : undefined;
  if (asked !== undefined && methods?.includes("*") === false && !methods.includes(asked)) {
    done(problem("ACCESS_DENIED", `pages of other sites may call this with ${methods.join(", ")}`));
    return;
  }
  if (!isAnyone) {
    set(reply, "vary", "Origin");
  }
  set(reply, "access-control-allow-origin", isAnyone ? "*" : String(req.headers.origin));
  if (credentials) {
    set(reply, "access-control-allow-credentials", "true");
  }
  if (asked === undefined) {
    const exposed = [RESPONSE_HEADERS, ...exposedHeaders.filter((name) => name !== "*")];
    set(reply, "access-control-expose-headers", exposed.join(", "));
    done();
    return;
  }
  const wanted = headers.includes("*")
    ? preflightHeaders(req).filter(isHeaderName).slice(0, MAX_SENT_HEADERS)
    : headers;
  reply
    .code(204)
    .header("vary", isAnyone ? VARY_BY_HEADERS : `Origin, ${VARY_BY_HEADERS}`)
    .header("access-control-allow-methods", methodsOf(methods))
    .header("access-control-allow-headers", [REQUEST_HEADERS, ...wanted].join(", "))
    .header("access-control-max-age", String(maxAgeSeconds ?? PREFLIGHT_MAX_AGE_SECONDS))
    .send();
}

/** Headers that a preflight may ask for. */
const MAX_SENT_HEADERS = 100;

const VARY_BY_HEADERS = "Access-Control-Request-Headers";

function methodsOf(methods: readonly string[] | undefined): string {
  return methods === undefined || methods.includes("*") ? METHODS : methods.join(", ");
}

/** RFC 9110, section 5.6.2. */
function isHeaderName(name: string): boolean {
  return /^[!#$%&'*+.^_`|~0-9a-z-]{1,128}$/.test(name);
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

/**
 * Refuses unsafe requests from pages of other sites with ACCESS_DENIED, except from origins that
 * `shareAcrossOrigins`, which comes before, has let call.
 */
export function refuseCrossSite(app: FastifyInstance): void {
  app.addHook("onRequest", (req, reply, done) => {
    // Browsers let every page open a WebSocket anywhere, and read what it brings.
    const isSafe = SAFE.has(req.method) && !hasUpgrade(req.raw);
    const isLet = isSafe || reply.hasHeader("access-control-allow-origin");
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
interface RequestOrigin {
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
