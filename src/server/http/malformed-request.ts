/**
 * Answers to malformed HTTP/1.1, which Node's parser refuses before there is a
 * request: headers that are too large, a request that takes too long to
 * arrive, bytes that are not HTTP. Node itself would answer with a bare status
 * line.
 */
import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { type Problem, problem } from "../../errors.ts";
import { LATE_BODY_ANSWER_MS } from "./body.ts";
import { errorJson, JSON_TYPE } from "./problem.ts";

/** Handles the event `clientError` of `node:http`: answers, unless an answer has begun, and closes. */
export function answerUnreadable(err: NodeJS.ErrnoException, socket: Duplex): void {
  // `_httpMessage` is the answer under way, if there is one: https://nodejs.org/api/http.html#event-clienterror
  const answering = (socket as { readonly _httpMessage?: { readonly headersSent: boolean } })
    ._httpMessage?.headersSent;
  if (!socket.writable || err.code === "ECONNRESET" || answering) {
    socket.destroy(err);
    return;
  }
  const { status, found } = whatWasWrong(err.code);
  const body = JSON.stringify(errorJson(found));
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n` +
      `Content-Type: ${JSON_TYPE}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n` +
      `Connection: close\r\n\r\n${body}`,
  );
  // A request answered like this must not run if the rest of it arrives after all.
  socket.pause();
  // A sender that does not close its side would hold the connection open for ever.
  setTimeout(() => socket.destroy(), LATE_BODY_ANSWER_MS).unref();
}

function whatWasWrong(code: string | undefined): { status: number; found: Problem } {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return {
        status: 431,
        found: problem(
          "REQUEST_INVALID",
          "the headers of the request are larger than 256 KiB together: send less in them; no token is longer than 41 characters",
        ),
      };
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return {
        status: 408,
        found: problem("REQUEST_INVALID", "the request took too long to arrive: send it again"),
      };
    default:
      return {
        status: 400,
        found: problem("REQUEST_INVALID", "the bytes of the request are not HTTP/1.1 or HTTP/2"),
      };
  }
}
