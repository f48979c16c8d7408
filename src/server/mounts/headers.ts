/**
 * The headers of requests and answers between callers and mounted servers. All pass, but those of
 * one connection, and what the platform says itself: who calls, from where, and for whole hosts.
 */
import type { IncomingMessage } from "node:http";
import type { ContextValues } from "@connectrpc/connect";
import type { FastifyReply, FastifyRequest } from "fastify";
import { addressOf, isSecure, principalOf } from "../../auth/principal.ts";
import { isOfConnection } from "../../protocol/connection-headers.ts";
import { fieldsOf } from "../../protocol/heads.ts";
import { SAID_TO_SERVERS } from "../../service/mounts.ts";
import { ownIdOf } from "../../tasks/worker-id.ts";
import { REQUEST_ID_HEADER } from "../http/request-id.ts";
import { ownCookie } from "../http/response-head.ts";
import { hasUpgrade } from "../http/upgrade.ts";
import { WORKER_HEADER } from "../http/worker-header.ts";
import { passedValue } from "../passed-headers.ts";
import { hostOf } from "../rpc/engine/caller.ts";

/** What is said of a whole host is the operator's, and of a connection is the node's. */
const KEPT_OUT =
  /^(?:proxy-.*|alt-svc|clear-site-data|strict-transport-security|public-key-pins|x-request-id|tessera-.*)$/;

/** Whether a request has a body. */
export function hasBody({ raw, headers }: FastifyRequest): boolean {
  if (hasUpgrade(raw)) {
    // Node has given the connection away: what comes on it is no body.
    return false;
  }
  if ("stream" in raw) {
    const { stream } = raw as { readonly stream: { readonly endAfterHeaders: boolean } };
    return !stream.endAfterHeaders;
  }
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/**
 * The headers of a request for a server, as `rawHeaders` has them. `key` is that of a WebSocket
 * over HTTP/2, which has none.
 */
export function requestHeaders(req: FastifyRequest, values: ContextValues, key?: string): string[] {
  const { rawHeaders } = req.raw;
  const named = namedByConnection(req.headers.connection);
  const isUpgrade = hasUpgrade(req.raw);
  const passed = ["Host", hostOf(values)];
  let hasLength = false;
  for (const [given, value] of fieldsOf(rawHeaders)) {
    const name = given.toLowerCase();
    const isFraming =
      (name === "content-length" && isUpgrade) ||
      (name === "sec-websocket-key" && key !== undefined);
    // CGI and WSGI take an underscore for a hyphen.
    const isSaid = SAID_TO_SERVERS.test(name.replaceAll("_", "-"));
    // Over HTTP/2, a cookie may come in several headers: they are passed as one, below.
    if (!isSaid && !isFraming && name !== "cookie" && !named.has(name)) {
      const own = passedValue(name, value, values);
      if (own !== undefined) {
        passed.push(given, own);
        hasLength ||= name === "content-length";
      }
    }
  }
  const { cookie } = req.headers;
  const own = cookie === undefined ? undefined : passedValue("cookie", cookie, values);
  if (own !== undefined) {
    passed.push("Cookie", own);
  }
  if (hasBody(req) && !hasLength) {
    passed.push("Transfer-Encoding", "chunked");
  }
  if (isUpgrade) {
    passed.push("Connection", "Upgrade", "Upgrade", "websocket");
  }
  if (key !== undefined) {
    passed.push("Sec-WebSocket-Key", key);
  }
  passed.push("X-Forwarded-For", addressOf(values));
  passed.push("X-Forwarded-Proto", isSecure(values) ? "https" : "http");
  passed.push("X-Request-Id", req.id);
  const caller = callerIn(values);
  if (caller !== undefined) {
    passed.push("Tessera-Caller", caller);
  }
  return passed;
}

/** Who calls, as a dictionary of RFC 8941; undefined where nobody said. */
export function callerIn(values: ContextValues): string | undefined {
  const principal = principalOf(values);
  switch (principal?.kind) {
    case "token":
      return `token="${principal.tokenId}", organization="${principal.organization}"`;
    case "session":
      return `user="${principal.userId}"`;
    default:
      return undefined;
  }
}

function namedByConnection(header: string | undefined): ReadonlySet<string> {
  return new Set(header?.split(",").map((name) => name.trim().toLowerCase()));
}

interface AnswerTo {
  readonly reply: FastifyReply;
  /** The worker that has answered. */
  readonly worker: string;
  /** Keeps what opens a WebSocket. */
  readonly isUpgrade?: boolean;
}

/** The headers of an answer for its caller. */
export function responseHeaders(
  { rawHeaders, headers }: IncomingMessage,
  { reply, worker, isUpgrade = false }: AnswerTo,
): [name: string, value: string | string[]][] {
  const named = namedByConnection(headers.connection);
  const passed = new Map<string, [name: string, values: string[]]>();
  for (const [given, value] of fieldsOf(rawHeaders)) {
    const name = given.toLowerCase();
    const opens = isUpgrade && (name === "connection" || name === "upgrade");
    const isPassed = opens || !(isOfConnection(name) || named.has(name) || KEPT_OUT.test(name));
    const own = name === "set-cookie" ? ownCookie(value) : value;
    if (isPassed && own !== undefined) {
      const [, all] = passed.get(name) ?? [given, []];
      passed.set(name, [given, [...all, own]]);
    }
  }
  const before = reply.getHeaders();
  for (const [name, value] of Object.entries(before)) {
    // Where the operator or the author lets pages of other sites call, and the server says nothing.
    if (name.startsWith("access-control-") && !passed.has(name)) {
      passed.set(name, [name, [String(value)]]);
    } else if (name === "vary") {
      const [given, all] = passed.get(name) ?? [name, []];
      passed.set(name, [given, [...all, String(value)]]);
    }
  }
  passed.set(REQUEST_ID_HEADER, [REQUEST_ID_HEADER, [reply.request.id]]);
  passed.set(WORKER_HEADER, [WORKER_HEADER, [ownIdOf(worker)]]);
  // Node takes several values over HTTP/2 for few names only.
  const joins = reply.request.raw.httpVersionMajor === 2;
  return [...passed.values()].map(([name, all]) => {
    const [first = "", ...others] = all;
    const isJoined = joins && name.toLowerCase() !== "set-cookie";
    return [name, others.length === 0 ? first : isJoined ? all.join(", ") : all];
  });
}
