/**
 * The headers of requests and answers between callers and mounted servers. All pass, but those of
 * one connection, and what the platform says itself: who calls, from where, and for whole hosts.
 */
import type { ContextValues } from "@connectrpc/connect";
import type { FastifyReply, FastifyRequest } from "fastify";
import { addressOf, isSecure, principalOf } from "../../auth/principal.ts";
import type { AnswerHead } from "../../pool/calls/mount-connection.ts";
import { isOfConnection } from "../../protocol/connection-headers.ts";
import { fieldsOf } from "../../protocol/heads.ts";
import { SAID_TO_SERVERS } from "../../service/mounts.ts";
import { ownIdOf } from "../../tasks/worker-id.ts";
import { REQUEST_ID_HEADER } from "../http/default-headers.ts";
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

/** What no value of a header has, such as the end of a line (RFC 9110, section 5.5). */
const NOT_IN_VALUE = /[^\t\x20-\x7e\x80-\xff]/;
/** What no path of a request line has. */
const NOT_IN_PATH = /[^\x21-\xff]/;

interface RequestLine {
  readonly method: string;
  readonly path: string;
  /** That of a WebSocket over HTTP/2, which has none. */
  readonly key: string | undefined;
}

/** The head of a request for a server. */
interface HeadForServer {
  /** Request line and headers, with the empty line behind them. */
  readonly text: string;
  /** Of the body; undefined without a body, and for one that goes in chunks. */
  readonly length: number | undefined;
}

/** The head of a request for a server. Throws `TypeError` for what a head cannot have. */
export function requestHead(
  req: FastifyRequest,
  values: ContextValues,
  { method, path, key }: RequestLine,
): HeadForServer {
  if (NOT_IN_PATH.test(path)) {
    throw new TypeError("the path has characters that a request cannot have");
  }
  const { rawHeaders } = req.raw;
  const named = namedByConnection(req.headers.connection);
  const isUpgrade = hasUpgrade(req.raw);
  let fields = "";
  let length: number | undefined;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const given = rawHeaders[index] ?? "";
    const value = rawHeaders[index + 1] ?? "";
    const name = given.toLowerCase();
    const isFraming =
      (name === "content-length" && isUpgrade) ||
      (name === "sec-websocket-key" && key !== undefined);
    // CGI and WSGI take an underscore for a hyphen.
    const isSaid = SAID_TO_SERVERS.test(name.includes("_") ? name.replaceAll("_", "-") : name);
    // Over HTTP/2, a cookie may come in several headers: they are passed as one, below.
    if (!isSaid && !isFraming && name !== "cookie" && !named.has(name)) {
      const own = passedValue(name, value, values);
      if (own !== undefined) {
        fields += field(given, own);
        length = name === "content-length" ? Number(own) : length;
      }
    }
  }
  const { cookie } = req.headers;
  const own = cookie === undefined ? undefined : passedValue("cookie", cookie, values);
  fields += own === undefined ? "" : field("Cookie", own);
  if (hasBody(req) && length === undefined) {
    fields += "Transfer-Encoding: chunked\r\n";
  }
  if (isUpgrade) {
    fields += "Connection: Upgrade\r\nUpgrade: websocket\r\n";
  }
  fields += key === undefined ? "" : field("Sec-WebSocket-Key", key);
  fields += field("X-Forwarded-For", addressOf(values));
  fields += field("X-Forwarded-Proto", isSecure(values) ? "https" : "http");
  fields += field("X-Request-Id", req.id);
  const caller = callerIn(values);
  fields += caller === undefined ? "" : field("Tessera-Caller", caller);
  const text = `${method} ${path} HTTP/1.1\r\n${field("Host", hostOf(values))}${fields}\r\n`;
  return { text, length };
}

function field(name: string, value: string): string {
  if (NOT_IN_VALUE.test(value)) {
    throw new TypeError(`the header ${name} has characters that a request cannot have`);
  }
  return `${name}: ${value}\r\n`;
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

const NONE: ReadonlySet<string> = new Set();

function namedByConnection(header: string | undefined): ReadonlySet<string> {
  if (header === undefined || header === "keep-alive" || header === "close") {
    return NONE;
  }
  return new Set(header.split(",").map((name) => name.trim().toLowerCase()));
}

interface AnswerTo {
  readonly reply: FastifyReply;
  /** The worker that has answered. */
  readonly worker: string;
  /** Keeps what opens a WebSocket. */
  readonly isUpgrade?: boolean;
}

/** The headers of an answer for its caller: names and values in turn. */
export function responseHeaders(
  { rawHeaders, connection }: AnswerHead,
  { reply, worker, isUpgrade = false }: AnswerTo,
): string[] {
  const named = namedByConnection(connection);
  const passed: string[] = [];
  const names = new Set<string>();
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const given = rawHeaders[index] ?? "";
    const value = rawHeaders[index + 1] ?? "";
    const name = given.toLowerCase();
    const opens = isUpgrade && (name === "connection" || name === "upgrade");
    const isPassed = opens || !(isOfConnection(name) || named.has(name) || KEPT_OUT.test(name));
    const own = name === "set-cookie" ? ownCookie(value) : value;
    if (isPassed && own !== undefined) {
      passed.push(given, own);
      names.add(name);
    }
  }
  const before = reply.getHeaders();
  for (const name in before) {
    // Where the operator or the author lets pages of other sites call, and the server says nothing.
    const isOpen = name.startsWith("access-control-") && !names.has(name);
    if (isOpen || name === "vary") {
      passed.push(name, String(before[name]));
    }
  }
  passed.push(REQUEST_ID_HEADER, reply.request.id, WORKER_HEADER, ownIdOf(worker));
  return passed;
}

/** The same by name, as HTTP/2 and what opens WebSockets take them. */
export function byName(
  fields: readonly string[],
  { joins }: { readonly joins: boolean },
): [name: string, value: string | string[]][] {
  const all = new Map<string, [name: string, values: string[]]>();
  for (const [given, value] of fieldsOf(fields)) {
    const name = given.toLowerCase();
    const known = all.get(name);
    known?.[1].push(value);
    all.set(name, known ?? [given, [value]]);
  }
  // Node takes several values over HTTP/2 for few names only.
  return [...all.values()].map(([name, values]) => {
    const [first = "", ...others] = values;
    const isJoined = joins && name.toLowerCase() !== "set-cookie";
    return [name, others.length === 0 ? first : isJoined ? values.join(", ") : values];
  });
}
