/**
 * Lingering close over HTTP/1.1 (RFC 9112, section 9.6) and HTTP/2. A socket that is closed while bytes of its
 * caller are unread is reset, and a caller that is still sending gets a broken pipe in the place of
 * the answer. So where a connection ends with an answer, its own side is closed, and what the caller
 * still sends of the request is thrown away, within a bound of bytes and time.
 *
 * Over HTTP/2 a stream is reset whose answer has ended before its request (RFC 9113, section 8.1).
 * Callers exist that forget the answer for it (curl 7.88), so there, too, the rest is read first.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { constants, type ServerHttp2Stream } from "node:http2";
import { discard } from "./body.ts";

/** How long a caller may go on to send a body that was answered, before its connection is reset. */
const LINGERING_CLOSE_TIMEOUT_MS = 10_000;

/** Has the connection of an answer linger where it ends with it. */
export function lingerAfter(req: IncomingMessage, res: ServerResponse): void {
  const { socket } = req;
  const close = socket.destroySoon;
  // Node calls this when the last answer of a connection was written.
  socket.destroySoon = (): void => {
    socket.destroySoon = close;
    if (req.complete || socket.destroyed || !res.writableFinished) {
      socket.destroySoon();
      return;
    }
    socket.end();
    const reset = setTimeout(() => socket.destroy(), LINGERING_CLOSE_TIMEOUT_MS);
    socket.once("close", () => clearTimeout(reset));
    req.once("end", () => socket.destroySoon());
    discard(req);
  };
}

/** Has the stream of a request that is refused linger where it comes over HTTP/2. */
export function lingerAfterRefusal(req: IncomingMessage): void {
  const { stream } = req as { readonly stream?: ServerHttp2Stream };
  if (stream === undefined || stream.endAfterHeaders || req.complete) {
    return;
  }
  const end = (): void => void stream.close(constants.NGHTTP2_NO_ERROR);
  const limit = setTimeout(end, LINGERING_CLOSE_TIMEOUT_MS);
  stream.once("close", () => clearTimeout(limit));
  discard(req);
}
