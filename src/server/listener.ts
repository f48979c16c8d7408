/**
 * Protocol detection: one port for HTTP/1.1 and cleartext HTTP/2 (prior
 * knowledge, as gRPC speaks it). A plain TCP server, which gets its connections
 * from the bound port (`bind.ts`), looks at the first bytes of each: HTTP/2 begins with the preface `PRI * HTTP/2.0` (RFC 9113,
 * section 3.4), which no HTTP/1.1 request can. It then hands the socket to the
 * server that speaks that protocol.
 *
 * The HTTP servers do not listen themselves, so this file does for them what
 * they do on listening and closing: it checks timeouts, drops idle connections
 * and ends sessions.
 */
import { createServer as createHttp1, type RequestListener, STATUS_CODES } from "node:http";
import { createServer as createHttp2, type ServerHttp2Session } from "node:http2";
import { createServer as createTcp, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type Problem, problem } from "../errors.ts";
import type { ConnectionLimit } from "./connection-limit.ts";
import { BODY_DEADLINE_MS, boundRest, LATE_BODY_ANSWER_MS } from "./http/body.ts";
import { lingerAfter } from "./http/lingering-close.ts";
import { errorJson, JSON_TYPE } from "./http/problem.ts";
import { asksForWebSocket, handleConnect, handleUpgrade } from "./http/upgrade.ts";

const PREFACE = Buffer.from("PRI * HTTP/2.0");

/**
 * How long an HTTP/1.1 connection stays open between requests: longer than the 60 s of common
 * load balancers, so that they close first.
 */
const CONNECTION_IDLE_TIMEOUT_MS = 65_000;

/**
 * Headers of one request. Node's own 16 KiB are too few for the selectors of a large
 * federation, which stand in the URL.
 */
const MAX_HEADER_BYTES = 256 * 1024;

/**
 * Streams of one HTTP/2 session at a time: more than clients commonly use, and further ones
 * wait for their turn.
 */
const MAX_SESSION_STREAMS = 256;

/**
 * What an HTTP/2 session may keep in memory without its bodies, in MB; new streams are refused
 * beyond. This is Node's own default.
 */
const MAX_SESSION_MEMORY_MB = 10;

/** How long a new connection may send nothing before it is closed. */
const SILENT_CONNECTION_TIMEOUT_MS = 30_000;

/** How long the headers of an HTTP/1.1 request may take to arrive. */
const HEADERS_TIMEOUT_MS = 60_000;

/** Interval at which HTTP/1.1 connections are checked for requests that take too long. */
const REQUEST_CHECK_INTERVAL_MS = 30_000;

/** Silence after which an HTTP/2 session is closed: clients of gRPC keep sessions between calls on purpose. */
const SESSION_IDLE_TIMEOUT_MS = 300_000;

/**
 * How long an HTTP/2 session may go without its first request before it is closed. Clients open
 * one when they have something to ask; pings and settings alone hold memory for nothing.
 */
const UNUSED_SESSION_TIMEOUT_MS = 10_000;

export interface ListenerTimeouts {
  /** A new connection is closed after this silence if it has not shown its protocol. Default: 30 s. */
  readonly silentMs?: number;
  /** For the headers of an HTTP/1.1 request to arrive. Default: 60 s. */
  readonly headersMs?: number;
  /** For a whole HTTP/1.1 request to arrive. Default: 5 min. */
  readonly requestMs?: number;
  /** Interval at which both are checked. Default: 30 s. */
  readonly checkEveryMs?: number;
  /**
   * An idle HTTP/2 session is sent GOAWAY after this time; its open streams
   * may finish. Default: 5 min, because gRPC clients keep sessions between
   * calls on purpose; their pings count as activity.
   */
  readonly idleMs?: number;
  /** An HTTP/2 session that has made no request is closed after this time. Default: 10 s. */
  readonly unusedMs?: number;
}

export interface Listener {
  /**
   * Hands its connections to the server of their protocol. They are its own if it listens, or
   * come as its event `connection`.
   */
  readonly server: Server;
  /**
   * Asks clients to use other connections from now on: HTTP/1.1 connections end with the answer
   * to their next request, HTTP/2 sessions get GOAWAY and end with their last stream.
   */
  retire(): void;
  /**
   * Lets requests under way finish, for at most `graceMs`, then closes every connection. Later
   * ones are closed at once.
   */
  close(graceMs: number): Promise<void>;
}

/**
 * Creates the listener; both protocols call `handler`.
 *
 * @param limit of open connections. Default: no limit.
 */
export function createListener(
  handler: RequestListener,
  timeouts: ListenerTimeouts = {},
  limit?: ConnectionLimit,
): Listener {
  const { silentMs = SILENT_CONNECTION_TIMEOUT_MS, headersMs = HEADERS_TIMEOUT_MS } = timeouts;
  const { checkEveryMs = REQUEST_CHECK_INTERVAL_MS } = timeouts;
  const { requestMs = BODY_DEADLINE_MS, idleMs = SESSION_IDLE_TIMEOUT_MS } = timeouts;
  const { unusedMs = UNUSED_SESSION_TIMEOUT_MS } = timeouts;
  let isRetired = false;
  const http1 = createHttp1(
    {
      keepAliveTimeout: CONNECTION_IDLE_TIMEOUT_MS,
      headersTimeout: headersMs,
      requestTimeout: requestMs,
      connectionsCheckingInterval: checkEveryMs,
      maxHeaderSize: MAX_HEADER_BYTES,
      // A request without a body, such as nearly every GET, has ended when it arrives, without events.
      // (Node before 24.12 does not know this option and emits them.)
      optimizeEmptyRequests: true,
      shouldUpgradeCallback: asksForWebSocket,
    },
    (req, res) => {
      if (isRetired) {
        res.shouldKeepAlive = false;
      }
      if (!res.shouldKeepAlive) {
        lingerAfter(req, res);
      }
      boundRest(req, res);
      handler(req, res);
    },
  );
  http1.on("clientError", answerUnreadable);
  http1.on("upgrade", (req, _socket, head) => handleUpgrade(req, head, handler));
  const http2 = createHttp2(
    {
      settings: { maxConcurrentStreams: MAX_SESSION_STREAMS, enableConnectProtocol: true },
      maxSessionMemory: MAX_SESSION_MEMORY_MB,
    },
    // The compatibility API has the same shape for what Fastify uses of it.
    handler as unknown as Parameters<typeof createHttp2>[1],
  );
  http2.on("connect", (req, res) => handleConnect(req, res, handler));
  const sockets = new Set<Socket>();
  /** Connections that have not shown their protocol yet. */
  const silent = new Set<Socket>();
  const sessions = new Set<ServerHttp2Session>();
  http2.on("session", (session) => {
    sessions.add(session);
    if (isRetired) {
      // Not before: the client may already have sent it.
      session.once("stream", () => session.close());
    }
    const unused = setTimeout(() => session.close(), unusedMs);
    session.once("stream", () => clearTimeout(unused));
    session.once("close", () => {
      clearTimeout(unused);
      sessions.delete(session);
    });
    session.setTimeout(idleMs, () => session.close());
  });
  let closing: Promise<void> | undefined;
  let onGone = (): void => {};
  const server = createTcp({ noDelay: true }, (socket) => {
    if (closing !== undefined) {
      socket.destroy();
      return;
    }
    if (limit?.admit(socket) === false) {
      return;
    }
    sockets.add(socket);
    silent.add(socket);
    socket.once("close", () => {
      sockets.delete(socket);
      silent.delete(socket);
      onGone();
    });
    // Until a server has taken the socket over, an error only ends it.
    socket.on("error", () => socket.destroy());
    sniff(socket, silentMs, (isHttp2) => {
      silent.delete(socket);
      (isHttp2 ? http2 : http1).emit("connection", socket);
    });
  });
  // Starts the checks of header and request timeouts.
  http1.emit("listening");

  const retire = (): void => {
    isRetired = true;
    for (const session of sessions) {
      session.close();
    }
  };

  const close = (graceMs: number): Promise<void> => {
    closing ??= new Promise((resolve) => {
      const force = setTimeout(() => {
        for (const socket of sockets) {
          socket.destroy();
        }
      }, graceMs);
      const idle = setInterval(() => http1.closeIdleConnections(), 50);
      onGone = () => {
        if (sockets.size === 0) {
          clearTimeout(force);
          clearInterval(idle);
          resolve();
        }
      };
      // The only error there can be is that a server was not listening.
      server.close(() => {});
      http1.close(() => {});
      http1.closeIdleConnections();
      for (const session of sessions) {
        session.close();
      }
      for (const socket of silent) {
        socket.destroy();
      }
      onGone();
    });
    return closing;
  };
  return { server, retire, close };
}

/** Calls back once the first bytes show the protocol, with the bytes put back. */
function sniff(socket: Socket, silentMs: number, decide: (isHttp2: boolean) => void): void {
  let seen: Buffer = Buffer.alloc(0);
  const giveUp = (): void => void socket.destroy();
  socket.setTimeout(silentMs, giveUp);
  const onData = (chunk: Buffer): void => {
    seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
    const length = Math.min(seen.length, PREFACE.length);
    const matches = seen.compare(PREFACE, 0, length, 0, length) === 0;
    if (matches && length < PREFACE.length) {
      return;
    }
    socket.off("data", onData);
    socket.pause();
    socket.setTimeout(0, giveUp);
    socket.off("timeout", giveUp);
    socket.unshift(seen);
    decide(matches);
    // An HTTP/2 session reads the socket itself, first what was put back; a flowing socket would lose it.
    if (!matches) {
      socket.resume();
    }
  };
  socket.on("data", onData);
}

// Answers to malformed HTTP/1.1, which Node's parser refuses before there is a
// request: headers that are too large, a request that takes too long to
// arrive, bytes that are not HTTP. Node itself would answer with a bare status
// line.

/** Handles the event `clientError` of `node:http`: answers, unless an answer has begun, and closes. */
function answerUnreadable(err: NodeJS.ErrnoException, socket: Duplex): void {
  // `_httpMessage` is the answer under way, if there is one: https://nodejs.org/api/http.html#event-clienterror
  const answering = (socket as { readonly _httpMessage?: { readonly headersSent: boolean } })
    ._httpMessage?.headersSent;
  if (!socket.writable || err.code === "ECONNRESET" || answering) {
    socket.destroy(err);
    return;
  }
  const { status, found } = whatWasWrong(err.code);
  const body = JSON.stringify(errorJson(found));
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n` +
      `Content-Type: ${JSON_TYPE}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n` +
      `Connection: close\r\n\r\n${body}`,
  );
  // A request answered like this must not run if the rest of it arrives after all.
  socket.pause();
  // A sender that does not close its side would hold the connection open for ever.
  setTimeout(() => socket.destroy(), LATE_BODY_ANSWER_MS).unref();
}

function whatWasWrong(code: string | undefined): { status: number; found: Problem } {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return {
        status: 431,
        found: problem(
          "REQUEST_INVALID",
          "the headers of the request are larger than 256 KiB together: send less in them; no token is longer than 41 characters",
        ),
      };
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return {
        status: 408,
        found: problem("REQUEST_INVALID", "the request took too long to arrive: send it again"),
      };
    default:
      return {
        status: 400,
        found: problem("REQUEST_INVALID", "the bytes of the request are not HTTP/1.1 or HTTP/2"),
      };
  }
}
