/** Reads request bodies, bounded in size and time. */
import { constants, type ServerHttp2Stream } from "node:http2";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { problem } from "../../errors.ts";
import type { BodyShare } from "./budget.ts";

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
  if (raw.readableEnded && !announcesBody(headers)) {
    // Nothing will tell of its end (`listener.ts`).
    return Promise.resolve(Buffer.alloc(0));
  }
  const announcedBytes = Number(headers["content-length"] ?? 0);
  return new Promise((resolve, reject) => {
    const reading = new BodyReading({ raw, share: bodyShare, maxBytes, resolve, reject });
    reading.begin(announcedBytes, deadlineMs);
  });
}

/** Of a request of HTTP/1.1, by RFC 9112, section 6.3. */
function announcesBody(headers: FastifyRequest["headers"]): boolean {
  return headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined;
}

type RawRequest = FastifyRequest["raw"];

interface BodyReadingOptions {
  readonly raw: RawRequest;
  readonly share: BodyShare | undefined;
  readonly maxBytes: number;
  readonly resolve: (body: Buffer) => void;
  readonly reject: (err: unknown) => void;
}

/** The reading of one body: one object, because every call with a body has one. */
class BodyReading {
  readonly #options: BodyReadingOptions;
  readonly #chunks: Buffer[] = [];
  #size = 0;
  #refused = false;
  #ended = false;
  #deadline: NodeJS.Timeout | undefined;

  constructor(options: BodyReadingOptions) {
    this.#options = options;
  }

  begin(announcedBytes: number, deadlineMs: number | undefined): void {
    const { raw } = this.#options;
    this.#hold(announcedBytes);
    if (deadlineMs !== undefined) {
      this.#deadline = setTimeout(() => this.#late(deadlineMs), deadlineMs);
    }
    // What is told once needs no listener that takes itself away, which costs twice as much.
    raw.on("data", (chunk: Buffer) => this.#take(chunk));
    raw.on("end", () => this.#end());
    const broken = () => this.#break();
    raw.on("error", broken);
    raw.on("close", broken);
    if (raw.destroyed) {
      this.#break();
    }
  }

  #take(chunk: Buffer): void {
    this.#size += chunk.length;
    if (this.#size > DISCARD_BYTES) {
      cut(this.#options.raw);
    } else if (!this.#refused) {
      this.#chunks.push(chunk);
      this.#hold(this.#size);
    }
  }

  #end(): void {
    this.#ended = true;
    clearTimeout(this.#deadline);
    this.#options.resolve(only(this.#chunks) ?? Buffer.concat(this.#chunks));
  }

  #break(): void {
    // Every request is closed after its end, and an error is costly to make.
    if (!this.#ended) {
      clearTimeout(this.#deadline);
      this.#options.reject(problem("BODY_MALFORMED", "the body ended before its end"));
    }
  }

  #late(limitMs: number): void {
    const message = `the body did not arrive in time: it may take ${limitMs / 1000} s`;
    this.#refuse(problem("BODY_MALFORMED", message));
    setTimeout(() => cut(this.#options.raw), ANSWER_MS).unref();
  }

  /** Counts what is held from now on, or refuses it. */
  #hold(bytes: number): void {
    const { share, maxBytes } = this.#options;
    if (bytes > maxBytes) {
      this.#refuse(bodyTooLarge(maxBytes));
      return;
    }
    try {
      share?.hold(bytes);
    } catch (err) {
      this.#refuse(err);
    }
  }

  #refuse(err: unknown): void {
    this.#refused = true;
    this.#chunks.length = 0;
    this.#options.reject(err);
  }
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
