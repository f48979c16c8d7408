/**
 * Requests that ask for a WebSocket: over HTTP/1.1 by an upgrade of their connection (RFC 6455),
 * which Node gives away with the request, and over HTTP/2 by an extended CONNECT (RFC 8441), whose
 * stream is one. They take the way of all others, with an answer of their own, so that access,
 * limits and errors are the same; the handler of the WebSocket takes the connection or the stream.
 *
 * Over HTTP/2 the method stays CONNECT: only what serves WebSockets has routes of it. To such a
 * request any status of 200 to 299 says that the WebSocket is open.
 */
import { type IncomingMessage, type RequestListener, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { FastifyInstance } from "fastify";
import { problem } from "../../errors.ts";
import { errorJson, JSON_TYPE } from "./problem.ts";

/** What a caller may send behind its request before the WebSocket is open. Over HTTP/2 its window is that. */
const MAX_EARLY_BYTES = 64 * 1024;

/** What opens a WebSocket over HTTP/1.1, and has no meaning over HTTP/2. */
const OF_HANDSHAKE: ReadonlySet<string> = new Set([
  "connection",
  "sec-websocket-accept",
  "upgrade",
]);

/**
 * Says that a WebSocket is open, with these headers. Returns what its frames pass through, from the
 * first one on.
 */
type OpenWebSocket = (
  headers: readonly (readonly [name: string, value: string | string[]])[],
) => Duplex;

interface Waiting {
  /** What closes when the caller has left. */
  readonly closes: Pick<Duplex, "destroyed">;
  readonly open: OpenWebSocket;
}

const upgrades = new WeakMap<object, Waiting>();

/** Whether a request asks for a WebSocket; others that name a protocol are answered in HTTP/1.1. */
export function asksForWebSocket({ method, headers }: IncomingMessage): boolean {
  return method === "GET" && headers.upgrade?.toLowerCase() === "websocket";
}

/** Lets routes have the method CONNECT; call it before they are added. */
export function routeConnects(app: FastifyInstance): void {
  app.addHttpMethod("CONNECT");
}

/**
 * Handles a request whose connection Node has given away. The connection ends with its answer, and
 * at once where an earlier request of it is not answered yet.
 */
export function handleUpgrade(req: IncomingMessage, head: Buffer, handler: RequestListener): void {
  const { socket } = req;
  const res = new ServerResponse(req);
  res.shouldKeepAlive = false;
  try {
    res.assignSocket(socket);
  } catch {
    // The answer before this one has the connection.
    socket.destroy();
    return;
  }
  res.once("finish", () => socket.destroySoon());
  socket.once("close", () => res.destroy());
  const stopReading = readEarly(socket, head);
  upgrades.set(req, {
    closes: socket,
    open: (headers) => {
      res.detachSocket(socket);
      const early = stopReading();
      if (early.length > 0) {
        socket.unshift(early);
      }
      const lines = headers.flatMap(([name, given]) =>
        [given].flat().map((value) => `${name}: ${value}\r\n`),
      );
      socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join("")}\r\n`, "latin1");
      return socket;
    },
  });
  handler(req, res);
}

/** Handles a CONNECT over HTTP/2: for WebSockets alone, as this server is no proxy. */
export function handleConnect(
  req: Http2ServerRequest,
  res: Http2ServerResponse,
  handler: RequestListener,
): void {
  if (req.headers[":protocol"] !== "websocket") {
    const message =
      "CONNECT opens WebSockets here, and nothing else: send it with :protocol websocket";
    const body = JSON.stringify(errorJson(problem("METHOD_NOT_ALLOWED", message)));
    // As RFC 9220, section 3, has it for protocols that are not supported.
    res.writeHead(501, { "content-type": JSON_TYPE }).end(body);
    return;
  }
  const { stream } = req;
  upgrades.set(req, {
    closes: stream,
    open: (headers) => {
      for (const [name, given] of headers) {
        if (!OF_HANDSHAKE.has(name.toLowerCase())) {
          res.setHeader(name, given);
        }
      }
      res.writeHead(200);
      return stream;
    },
  });
  // The compatibility API has the same shape for what Fastify uses of it.
  handler(req as unknown as IncomingMessage, res as unknown as ServerResponse);
}

/** Reads on while the caller waits: nobody else would see that they have left. */
function readEarly(socket: Socket, head: Buffer): () => Buffer {
  const read = [head];
  let bytes = head.length;
  const onData = (chunk: Buffer): void => {
    read.push(chunk);
    bytes += chunk.length;
    if (bytes > MAX_EARLY_BYTES) {
      socket.destroy();
    }
  };
  const onEnd = (): void => void socket.destroy();
  socket.on("data", onData);
  socket.once("end", onEnd);
  return () => {
    socket.off("data", onData);
    socket.off("end", onEnd);
    socket.pause();
    return Buffer.concat(read);
  };
}

/** Takes a request for a WebSocket; undefined for others, and where the caller has left. */
export function takeUpgrade(req: object): OpenWebSocket | undefined {
  const found = upgrades.get(req);
  upgrades.delete(req);
  return found?.closes.destroyed === false ? found.open : undefined;
}

/** Whether a request asks for a WebSocket and nobody has taken it. */
export function hasUpgrade(req: object): boolean {
  return upgrades.has(req);
}
