/**
 * The HTTP side of the egress proxy. Node's parser reads the requests: CONNECT
 * (RFC 9110, section 9.3.6), and plain ones in absolute form (`forward.ts`).
 */
import { createServer, type IncomingMessage, type Server, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { answer, forward, MAX_PROXY_HEADER_BYTES } from "./forward.ts";
import { type Asked, ProxyRequestError, refusalOf } from "./refusals.ts";
import { tunnel } from "./tunnel.ts";

/** Interval at which connections are checked for headers that take too long. */
const HEADER_CHECK_INTERVAL_MS = 1_000;

interface HttpSideOptions {
  /** Opens a connection, or rejects with the reason for the client. */
  readonly open: (asked: Asked) => Promise<Socket>;
  /** For the headers of a request to arrive. */
  readonly handshakeMs: number;
  /** Silence after which a connection is closed. */
  readonly idleMs: number;
}

/** A server that is given its connections, and does not listen itself. */
export function httpSide(options: HttpSideOptions): Server {
  const { handshakeMs, idleMs } = options;
  const server = createServer({
    maxHeaderSize: MAX_PROXY_HEADER_BYTES,
    headersTimeout: handshakeMs,
    requestTimeout: 0,
    connectionsCheckingInterval: HEADER_CHECK_INTERVAL_MS,
  });
  server.setTimeout(idleMs);
  server.on("connect", (req, socket, head) => {
    // It came as a connection of a net.Server.
    void connectTunnel(req, { socket: socket as Socket, head }, options);
  });
  server.on("request", (req, res) => {
    forward(req, res, options).catch((err: unknown) => answer(res, err));
  });
  server.on("clientError", (_err, socket) => {
    if (socket.writable) {
      const text = `HTTP/1.1 400 ${STATUS_CODES[400]}\r\nConnection: close\r\n\r\n`;
      socket.end(text, () => socket.destroy());
    } else {
      socket.destroy();
    }
  });
  return server;
}

async function connectTunnel(
  req: IncomingMessage,
  { socket, head }: { readonly socket: Socket; readonly head: Buffer },
  { open, idleMs }: HttpSideOptions,
): Promise<void> {
  socket.setTimeout(0);
  socket.on("error", () => socket.destroy());
  // What came early is put back at once: after the end of the stream, nothing can be.
  socket.pause();
  if (head.length > 0) {
    socket.unshift(head);
  }
  try {
    const upstream = await open(authority(req.url ?? ""));
    socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
    tunnel(socket, upstream, idleMs);
  } catch (err) {
    const { status, text } = refusalOf(err);
    socket.write(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: text/plain; charset=utf-8\r\n` +
        `Content-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`,
    );
    socket.destroySoon();
  }
}

/** Parses the target of a CONNECT request: a host and its port. */
function authority(target: string): Asked {
  const [, bracketed, name, digits] = /^(?:\[([^\]]*)\]|([^:]*)):(\d{1,5})$/.exec(target) ?? [];
  const host = bracketed ?? name ?? "";
  const port = Number(digits);
  if (host === "" || !(port >= 1 && port <= 65_535)) {
    throw new ProxyRequestError("CONNECT takes a host and a port, such as example.com:443");
  }
  return { host, port };
}
