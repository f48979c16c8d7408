/** Abort signals for calls whose client disconnects. */
import type { Socket } from "node:net";
import { Code, ConnectError } from "@connectrpc/connect";
import type { FastifyReply } from "fastify";

/** Signals of HTTP/1.1 connections. Creating one for each call costs as much as finding its route. */
const ofConnections = new WeakMap<Socket, AbortSignal>();

/**
 * Aborts when the connection (HTTP/1.1) or the stream (HTTP/2) closes before
 * the answer is sent. All calls on an HTTP/1.1 connection share one signal,
 * which aborts whenever the connection closes, so listeners have to be removed
 * when their call ends.
 */
export function disconnectSignal({ raw, request }: FastifyReply): AbortSignal {
  if ("stream" in raw) {
    const controller = new AbortController();
    raw.on("close", () => {
      if (!raw.writableEnded) {
        controller.abort(gone());
      }
    });
    return controller.signal;
  }
  // Not the response's socket: a pipelined response has none until those before it are sent.
  const { socket } = request.raw;
  if (socket.destroyed) {
    return AbortSignal.abort(gone());
  }
  return ofConnections.get(socket) ?? connectionSignal(socket);
}

function connectionSignal(socket: Socket): AbortSignal {
  const controller = new AbortController();
  socket.once("close", () => controller.abort(gone()));
  ofConnections.set(socket, controller.signal);
  return controller.signal;
}

function gone(): ConnectError {
  return new ConnectError("the client is gone", Code.Canceled);
}
