/** Tells a call that its client is gone. */
import type { Socket } from "node:net";
import { Code, ConnectError } from "@connectrpc/connect";
import type { FastifyReply } from "fastify";

/** Of connections of HTTP/1.1. Making one for each call costs as much as finding its route. */
const ofConnections = new WeakMap<Socket, AbortSignal>();

/**
 * Aborts when the connection (HTTP/1.1) or the stream (HTTP/2) closes before
 * the answer is out. All calls on a connection of HTTP/1.1 share one signal,
 * which aborts whenever that closes: whoever listens to it has to stop when
 * the call ends.
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
  // Not the response's: one that waits for others on its connection has none yet.
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
