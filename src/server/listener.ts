/**
 * One port for HTTP/1.1 and cleartext HTTP/2 (prior knowledge, as gRPC speaks
 * it). A plain TCP server looks at the first bytes of a connection: HTTP/2
 * begins with the preface `PRI * HTTP/2.0` (RFC 9113, section 3.4), which no
 * HTTP/1.1 request can; the socket then goes to the server that speaks it.
 *
 * Because the HTTP servers do not listen themselves, what they do on
 * listening and closing (checking timeouts, dropping idle connections, ending
 * sessions) is done for them here.
 */
import { createServer as createHttp1, type RequestListener } from "node:http";
import { createServer as createHttp2, type ServerHttp2Session } from "node:http2";
import { createServer as createTcp, type Server, type Socket } from "node:net";
import { BODY_DEADLINE_MS } from "./http/body.ts";
import { answerUnreadable } from "./http/unreadable.ts";

const PREFACE = Buffer.from("PRI * HTTP/2.0");

/** Longer than the 60 s of common load balancers, so that they close first. */
const KEEP_ALIVE_MS = 65_000;

/** Of one request. Node's own 16 KiB are too few for the selectors of a large federation, which stand in the URL. */
const MAX_HEADER_BYTES = 256 * 1024;

/** Streams of one HTTP/2 session at a time: more than clients commonly use, and they wait for their turn. */
const MAX_STREAMS = 256;

/** What an HTTP/2 session may keep in memory besides its bodies, in MB; new streams are refused beyond. Node's own. */
const MAX_SESSION_MEMORY_MB = 10;

export interface ListenerTimeouts {
  /** A new connection that has not told its protocol is closed after so long a silence. Default: 30 s. */
  readonly silentMs?: number;
  /** The headers of an HTTP/1.1 request must be there after so long. Default: 60 s. */
  readonly headersMs?: number;
  /** All of an HTTP/1.1 request must be there after so long. Default: 5 min. */
  readonly requestMs?: number;
  /** How often that is looked at. Default: 30 s. */
  readonly checkEveryMs?: number;
  /**
   * After so long a silence an HTTP/2 session is told to go away; streams that
   * are open come to their end. Default: 5 min, because clients of gRPC keep
   * sessions between calls on purpose; their pings count as life.
   */
  readonly idleMs?: number;
}

export interface Listener {
  /** Listens, and hands what comes to both protocols. */
  readonly server: Server;
  /** Takes no more connections; those that are there go on. */
  stopAccepting(): void;
  /** Lets requests under way finish, for at most `graceMs`, then closes every connection. */
  close(graceMs: number): Promise<void>;
}

export function createListener(
  handler: RequestListener,
  timeouts: ListenerTimeouts = {},
): Listener {
  const { silentMs = 30_000, headersMs = 60_000, checkEveryMs = 30_000 } = timeouts;
  const { requestMs = BODY_DEADLINE_MS, idleMs = 300_000 } = timeouts;
  const http1 = createHttp1(
    {
      keepAliveTimeout: KEEP_ALIVE_MS,
      headersTimeout: headersMs,
      requestTimeout: requestMs,
      connectionsCheckingInterval: checkEveryMs,
      maxHeaderSize: MAX_HEADER_BYTES,
      // A request without a body, as nearly every GET is, has ended when it comes, and no events tell of that.
      // (Node before 24.12 does not know of it, and tells.)
      optimizeEmptyRequests: true,
    },
    handler,
  );
  http1.on("clientError", answerUnreadable);
  const http2 = createHttp2(
    {
      settings: { maxConcurrentStreams: MAX_STREAMS },
      maxSessionMemory: MAX_SESSION_MEMORY_MB,
    },
    // The compatibility API has the same shape for what Fastify uses of it.
    handler as unknown as Parameters<typeof createHttp2>[1],
  );
  const sockets = new Set<Socket>();
  /** Connections that have not told their protocol. */
  const silent = new Set<Socket>();
  const sessions = new Set<ServerHttp2Session>();
  http2.on("session", (session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
    session.setTimeout(idleMs, () => session.close());
  });
  const server = createTcp({ noDelay: true }, (socket) => {
    sockets.add(socket);
    silent.add(socket);
    socket.once("close", () => {
      sockets.delete(socket);
      silent.delete(socket);
    });
    // Until a protocol has taken the socket over, an error only ends it.
    socket.on("error", () => socket.destroy());
    sniff(socket, silentMs, (isHttp2) => {
      silent.delete(socket);
      (isHttp2 ? http2 : http1).emit("connection", socket);
    });
  });
  // Starts the checks of header and request timeouts.
  server.once("listening", () => http1.emit("listening"));

  let closing: Promise<void> | undefined;
  const close = (graceMs: number): Promise<void> => {
    closing ??= new Promise((resolve) => {
      const force = setTimeout(() => {
        for (const socket of sockets) {
          socket.destroy();
        }
      }, graceMs);
      const idle = setInterval(() => http1.closeIdleConnections(), 50);
      server.close(() => {
        clearTimeout(force);
        clearInterval(idle);
        resolve();
      });
      // Neither listens, which is the only complaint they can have.
      http1.close(() => {});
      http1.closeIdleConnections();
      for (const session of sessions) {
        session.close();
      }
      for (const socket of silent) {
        socket.destroy();
      }
    });
    return closing;
  };
  return { server, close, stopAccepting: () => void server.close() };
}

/** Calls back when the first bytes tell the protocol, with the bytes put back. */
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
    // An HTTP/2 session reads the socket by itself, first what was put back; flowing, it would be lost.
    if (!matches) {
      socket.resume();
    }
  };
  socket.on("data", onData);
}
