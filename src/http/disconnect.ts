/** Tells a call that its client is gone. */
import type { Socket } from "node:net";
import { Code, ConnectError } from "@connectrpc/connect";
import type { FastifyReply } from "fastify";

/** Of connections of HTTP/1.1. Making one for each call costs as much as finding its route. */
const ofConnections = new WeakMap<Socket, AbortSignal>();

/**
 * Aborts when the connection (HTTP/1.1) or the stream (HTTP/2) closes before
 * the answer is out. All calls on a connection of HTTP/1.1 share one signal,
 * so whoever listens to it has to stop when the call ends.
 */
export function disconnectSignal({ raw }: FastifyReply): AbortSignal {
  // HTTP/1.1 has no streams, and a response no socket any more when its connection has closed.
  const { socket, stream } = raw as { readonly socket: Socket | null; readonly stream?: unknown };
  if (stream !== undefined) {
    const controller = new AbortController();
    raw.on("close", () => {
      if (!raw.writableEnded) {
        controller.abort(gone());
      }
    });
    return controller.signal;
  }
  if (socket === null || socket.destroyed) {
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
