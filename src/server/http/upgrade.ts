/**
 * Requests over HTTP/1.1 that ask for a WebSocket (RFC 6455). Node gives their connection away with
 * the request. They take the way of all others, with an answer of their own, so that access,
 * limits and errors are the same; whoever serves the WebSocket takes the connection.
 */
import { IncomingMessage, type RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** What a caller may send behind its request before the WebSocket is open. */
const MAX_EARLY_BYTES = 64 * 1024;

/** The connection of a request that asks for a WebSocket. */
export interface Upgrade {
  readonly socket: Socket;
  /** What came after the request. */
  readonly head: Buffer;
}

interface Waiting {
  readonly socket: Socket;
  readonly res: ServerResponse;
  /** Stops reading; returns what was read. */
  readonly stop: () => Buffer;
}

const upgrades = new WeakMap<IncomingMessage, Waiting>();

/** Whether a request asks for a WebSocket; others that name a protocol are answered in HTTP/1.1. */
export function asksForWebSocket({ method, headers }: IncomingMessage): boolean {
  return method === "GET" && headers.upgrade?.toLowerCase() === "websocket";
}

/**
 * Handles a request whose connection Node has given away. The connection ends with its answer, and
 * at once where an earlier request of it is not answered yet.
 */
export function handleUpgrade(
  req: IncomingMessage,
  { socket, head }: Upgrade,
  handler: RequestListener,
): void {
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
  upgrades.set(req, { socket, res, stop: readEarly(socket, head) });
  handler(req, res);
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

/** Takes the connection of a request that asks for a WebSocket; undefined for others. */
export function takeUpgrade(req: object): Upgrade | undefined {
  const found = req instanceof IncomingMessage ? upgrades.get(req) : undefined;
  if (found === undefined) {
    return undefined;
  }
  upgrades.delete(req as IncomingMessage);
  const { res, socket, stop } = found;
  res.detachSocket(socket);
  return { socket, head: stop() };
}

/** Whether a request asks for a WebSocket and nobody has taken its connection. */
export function hasUpgrade(req: object): boolean {
  return req instanceof IncomingMessage && upgrades.has(req);
}
