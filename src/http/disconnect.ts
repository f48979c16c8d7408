/** Tells a call that its client is gone. */
import { Code, ConnectError } from "@connectrpc/connect";
import type { FastifyReply } from "fastify";

/** Aborts when the connection (HTTP/1.1) or the stream (HTTP/2) closes before the answer is out. */
export function disconnectSignal(reply: FastifyReply): AbortSignal {
  const controller = new AbortController();
  const { raw } = reply;
  raw.on("close", () => {
    if (!raw.writableEnded) {
      controller.abort(new ConnectError("the client is gone", Code.Canceled));
    }
  });
  return controller.signal;
}
