/** Reads request bodies, bounded in size and time. */
import { constants, type ServerHttp2Stream } from "node:http2";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { problem } from "../errors.ts";

/**
 * How much of a body that is refused is thrown away so that its sender gets
 * to read the answer, before its connection is cut.
 */
export const DISCARD_BYTES = 256 * 1024 * 1024;

/** How long a request may take to arrive. Over HTTP/1.1 Node sees to that itself (`listener.ts`). */
export const BODY_DEADLINE_MS = 300_000;

/** For the answer to one that came too late, before its connection or stream is cut. */
export const ANSWER_MS = 1_000;

/** Leaves the bodies of all requests of a server to its handlers, which know their limits. */
export function leaveBodies(app: FastifyInstance): void {
  for (const method of app.supportedMethods) {
    app.addHttpMethod(method, { hasBody: false, overrideExisting: true });
  }
}

/**
 * The whole body. Errors: BODY_TOO_LARGE and SERVER_BUSY as soon as that is
 * known; the rest of the body is then discarded as it arrives. BODY_MALFORMED
 * when the sender stops in the middle, or has not sent all after `deadlineMs`,
 * for which Node has a time of its own over HTTP/1.1.
 */
export function readBody(
  { raw, headers, bodyShare }: FastifyRequest,
  maxBytes: number,
  deadlineMs = raw.httpVersionMajor === 1 ? undefined : BODY_DEADLINE_MS,
): Promise<Buffer> {
  if (raw.readableEnded) {
    // It has none, and nothing will tell so (`listener.ts`).
    return Promise.resolve(Buffer.alloc(0));
  }
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    let refused = false;
    const refuse = (err: unknown) => {
      refused = true;
      chunks.length = 0;
      reject(err);
    };
    /** Counts what is held from now on, or refuses it. */
    const hold = (bytes: number) => {
      if (bytes > maxBytes) {
        refuse(bodyTooLarge(maxBytes));
        return;
      }
      try {
        bodyShare?.hold(bytes);
      } catch (err) {
        refuse(err);
      }
    };
    hold(Number(headers["content-length"] ?? 0));
    raw.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > DISCARD_BYTES) {
        cut(raw);
      } else if (!refused) {
        chunks.push(chunk);
        hold(size);
      }
    });
    const late = (limitMs: number): void => {
      const message = `the body did not arrive in time: it may take ${limitMs / 1000} s`;
      refuse(problem("BODY_MALFORMED", message));
      setTimeout(() => cut(raw), ANSWER_MS).unref();
    };
    const deadline =
      deadlineMs === undefined ? undefined : setTimeout(late, deadlineMs, deadlineMs);
    // What is told once needs no listener that takes itself away, which costs twice as much.
    let ended = false;
    const broken = () => {
      // Every request is closed after its end, and an error is costly to make.
      if (!ended) {
        clearTimeout(deadline);
        reject(problem("BODY_MALFORMED", "the body ended before its end"));
      }
    };
    raw.on("end", () => {
      ended = true;
      clearTimeout(deadline);
      resolve(only(chunks) ?? Buffer.concat(chunks));
    });
    raw.on("error", broken);
    raw.on("close", broken);
    if (raw.destroyed) {
      broken();
    }
  });
}

/**
 * The chunks of a body that someone else puts together, with the same bounds:
 * SERVER_BUSY where it is too much for the server, and the end of the
 * connection or stream where it takes longer than `deadlineMs`.
 */
export async function* boundedChunks(
  { raw, headers, bodyShare }: FastifyRequest,
  chunks: AsyncIterable<Uint8Array>,
  deadlineMs = BODY_DEADLINE_MS,
): AsyncGenerator<Uint8Array, void, undefined> {
  const deadline = setTimeout(() => cut(raw), deadlineMs);
  // Whoever reads may stop without a word.
  raw.once("close", () => clearTimeout(deadline));
  try {
    bodyShare?.hold(Number(headers["content-length"] ?? 0));
    let size = 0;
    for await (const chunk of chunks) {
      size += chunk.length;
      bodyShare?.hold(size);
      yield chunk;
    }
  } finally {
    clearTimeout(deadline);
  }
}

export function bodyTooLarge(maxBytes: number): Error {
  return problem("BODY_TOO_LARGE", `the body is larger than ${maxBytes} bytes; send less`);
}

/** Ends the connection in HTTP/1.1, and in HTTP/2 only the stream. */
export function cut(raw: FastifyRequest["raw"]): void {
  const { stream } = raw as { readonly stream?: ServerHttp2Stream };
  if (stream === undefined) {
    // A request without a body is destroyed already, and its connection is not.
    raw.socket.destroy();
  } else {
    stream.close(constants.NGHTTP2_CANCEL);
  }
}

function only(chunks: readonly Buffer[]): Buffer | undefined {
  return chunks.length === 1 ? chunks[0] : undefined;
}
