/**
 * Requests over HTTP/1.1 that ask for a WebSocket (RFC 6455). Node gives their connection away with
 * the request. They take the way of all others, with an answer of their own, so that access,
 * limits and errors are the same; whoever serves the WebSocket takes the connection.
 */
import { IncomingMessage, type RequestListener, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

/** The connection of a request that asks for a WebSocket. */
export interface Upgrade {
  readonly socket: Duplex;
  /** What came after the request. */
  readonly head: Buffer;
}

const upgrades = new WeakMap<IncomingMessage, Upgrade & { readonly res: ServerResponse }>();

/** Whether a request asks for a WebSocket; others that name a protocol are answered in HTTP/1.1. */
export function asksForWebSocket({ method, headers }: IncomingMessage): boolean {
  return method === "GET" && headers.upgrade?.toLowerCase() === "websocket";
}

/** Handles a request whose connection Node has given away. The connection ends with its answer. */
export function handleUpgrade(
  req: IncomingMessage,
  upgrade: Upgrade,
  handler: RequestListener,
): void {
  const res = new ServerResponse(req);
  res.shouldKeepAlive = false;
  res.assignSocket(upgrade.socket as Parameters<ServerResponse["assignSocket"]>[0]);
  res.once("finish", () => upgrade.socket.end());
  upgrade.socket.once("close", () => res.destroy());
  upgrades.set(req, { ...upgrade, res });
  handler(req, res);
}

/** Takes the connection of a request that asks for a WebSocket; undefined for others. */
export function takeUpgrade(req: object): Upgrade | undefined {
  const found = req instanceof IncomingMessage ? upgrades.get(req) : undefined;
  if (found === undefined) {
    return undefined;
  }
  upgrades.delete(req as IncomingMessage);
  const { res, ...upgrade } = found;
  res.detachSocket(upgrade.socket as Parameters<ServerResponse["detachSocket"]>[0]);
  return upgrade;
}

/** Whether a request asks for a WebSocket and nobody has taken its connection. */
export function hasUpgrade(req: object): boolean {
  return req instanceof IncomingMessage && upgrades.has(req);
}
