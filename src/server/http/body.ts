/** Reading of request bodies, bounded in size and time. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { constants, type ServerHttp2Stream } from "node:http2";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { HttpBody } from "../../../gen/google/api/httpbody_pb.js";
import { giveBack } from "../../collections/bytes.ts";
import { problem } from "../../errors.ts";
import type { BodyShare } from "./body-budget.ts";

/**
 * Rest of a refused body that is thrown away, so that its sender gets to read the answer,
 * before its connection is cut.
 */
export const MAX_DISCARDED_BYTES = 256 * 1024 * 1024;

/** How often it is looked how much of a body over HTTP/1.1 was thrown away. */
const DISCARD_CHECK_INTERVAL_MS = 100;

/** A body from this length on is put together as it arrives, and not at its end once more. */
const LONG_BODY_BYTES = 65_536;

/**
 * How long a request may take to arrive. Over HTTP/1.1 Node sees to that itself
 * (`listener.ts`).
 */
export const BODY_DEADLINE_MS = 300_000;

/**
 * How long the answer to a request that came too late has, before its connection or stream is
 * cut.
 */
export const LATE_BODY_ANSWER_MS = 1_000;

/** Leaves the bodies of all requests to the handlers, which know their limits. */
export function leaveBodies(app: FastifyInstance): void {
  for (const method of app.supportedMethods) {
    app.addHttpMethod(method, { hasBody: false, overrideExisting: true });
  }
}

/**
 * Reads the whole body. Errors: BODY_TOO_LARGE and SERVER_BUSY as soon as that
 * is known; the rest of the body is then discarded as it arrives.
 * BODY_MALFORMED when the sender stops before the end, or has not sent all
 * after `deadlineMs`, for which Node has its own timeout over HTTP/1.1.
 */
export function readBody(
  { raw, headers, bodyShare }: FastifyRequest,
  maxBytes: number,
  {
    deadlineMs = raw.httpVersionMajor === 1 ? undefined : BODY_DEADLINE_MS,
    announced,
  }: {
    readonly deadlineMs?: number | undefined;
    /** The length of the body by its first chunk, for a body that begins with its length. */
    readonly announced?: (first: Buffer) => number;
  } = {},
): Promise<Buffer> {
  if (raw.readableEnded && !announcesBody(headers)) {
    // There will be no event for its end (`listener.ts`).
    return Promise.resolve(Buffer.alloc(0));
  }
  const announcedBytes = Number(headers["content-length"] ?? 0);
  return new Promise((resolve, reject) => {
    const reading = new BodyReading({
      raw,
      share: bodyShare,
      maxBytes,
      announced,
      resolve,
      reject,
    });
    reading.begin(announcedBytes, deadlineMs);
  });
}

/** Whether an HTTP/1.1 request has a body, by RFC 9112, section 6.3. */
function announcesBody(headers: FastifyRequest["headers"]): boolean {
  return headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined;
}

type RawRequest = FastifyRequest["raw"];

interface BodyReadingOptions {
  readonly raw: RawRequest;
  readonly share: BodyShare | undefined;
  readonly maxBytes: number;
  readonly announced: ((first: Buffer) => number) | undefined;
  readonly resolve: (body: Buffer) => void;
  readonly reject: (err: unknown) => void;
}

/** The reading of one body: a single object instead of closures, because every call with a body has one. */
class BodyReading {
  readonly #options: BodyReadingOptions;
  readonly #chunks: Buffer[] = [];
  /** Of a long body whose length is known, where its chunks go as they come. */
  #whole: Buffer | undefined;
  #size = 0;
  #refused = false;
  #ended = false;
  #deadline: NodeJS.Timeout | undefined;

  constructor(options: BodyReadingOptions) {
    this.#options = options;
  }

  begin(announcedBytes: number, deadlineMs: number | undefined): void {
    const { raw } = this.#options;
    this.#expect(announcedBytes);
    if (deadlineMs !== undefined) {
      this.#deadline = setTimeout(() => this.#late(deadlineMs), deadlineMs);
    }
    // `on`, not `once`: a listener that removes itself costs twice as much, and these events come once.
    raw.on("data", (chunk: Buffer) => this.#take(chunk));
    raw.on("end", () => this.#end());
    const broken = () => this.#break();
    raw.on("error", broken);
    raw.on("close", broken);
    if (raw.destroyed) {
      this.#break();
    }
  }

  #expect(bytes: number): void {
    this.#hold(bytes);
    if (bytes > LONG_BODY_BYTES && !this.#refused) {
      this.#whole = Buffer.allocUnsafeSlow(bytes);
    }
  }

  #take(chunk: Buffer): void {
    const { announced } = this.#options;
    if (this.#size === 0 && announced !== undefined) {
      this.#expect(announced(chunk));
    }
    this.#size += chunk.length;
    if (this.#size > MAX_DISCARDED_BYTES) {
      cut(this.#options.raw);
    } else if (!this.#refused) {
      this.#hold(this.#size);
      if (this.#refused) {
        return;
      }
      if (this.#whole !== undefined && this.#size <= this.#whole.length) {
        this.#whole.set(chunk, this.#size - chunk.length);
        giveBack(chunk);
      } else {
        this.#chunks.push(chunk);
      }
    }
  }

  #end(): void {
    this.#ended = true;
    clearTimeout(this.#deadline);
    const whole = this.#whole?.subarray(0, this.#size);
    const parts = whole === undefined ? this.#chunks : [whole, ...this.#chunks];
    this.#options.resolve(only(parts) ?? Buffer.concat(parts));
  }

  #break(): void {
    // Every request closes after its end, and an error is costly to create.
    if (!this.#ended) {
      clearTimeout(this.#deadline);
      this.#options.reject(problem("BODY_MALFORMED", "the body ended before its end"));
    }
  }

  #late(limitMs: number): void {
    const message = `the body did not arrive in time: it may take ${limitMs / 1000} s`;
    this.#refuse(problem("BODY_MALFORMED", message));
    setTimeout(() => cut(this.#options.raw), LATE_BODY_ANSWER_MS).unref();
  }

  /** Takes these bytes from the budget, or refuses the body. */
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
    this.#whole = undefined;
    this.#chunks.length = 0;
    this.#options.reject(err);
  }
}

/**
 * Passes on the chunks of a body that a library assembles, with the same
 * bounds: SERVER_BUSY if the body is too much for the server, and the end of
 * the connection or stream if it takes longer than `deadlineMs`.
 */
export async function* boundedChunks(
  { raw, headers, bodyShare }: FastifyRequest,
  chunks: AsyncIterable<Uint8Array>,
  deadlineMs = BODY_DEADLINE_MS,
): AsyncGenerator<Uint8Array, void, undefined> {
  const deadline = setTimeout(() => cut(raw), deadlineMs);
  // A reader may stop without closing the generator.
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

/** Throws away what is left of a body, even if it had a reader, and bounded in size (`boundRest`). */
export function discard(raw: FastifyRequest["raw"]): void {
  if (raw.readableEnded) {
    return;
  }
  if ("stream" in raw) {
    let size = 0;
    raw.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > MAX_DISCARDED_BYTES) {
        cut(raw);
      }
    });
  }
  // A reader that still waits for it would keep it from flowing.
  raw.removeAllListeners("readable");
  raw.resume();
}

/**
 * Bounds what arrives of the body of a request over HTTP/1.1 after its answer. Node throws it away
 * and tells nobody, where the body had no reader; so what the connection has read is counted.
 */
export function boundRest(raw: IncomingMessage, res: ServerResponse): void {
  if (!raw.complete) {
    res.once("finish", () => {
      if (!raw.complete) {
        boundArriving(raw);
      }
    });
  }
}

function boundArriving(raw: IncomingMessage): void {
  const { socket } = raw;
  const readBefore = socket.bytesRead;
  const timer = setInterval(() => {
    const isOver = raw.complete || socket.destroyed;
    const isTooMuch = socket.bytesRead - readBefore > MAX_DISCARDED_BYTES;
    if (isOver || isTooMuch) {
      clearInterval(timer);
    }
    if (isTooMuch && !isOver) {
      cut(raw);
    }
  }, DISCARD_CHECK_INTERVAL_MS);
  timer.unref();
}

/** The error for a body above its limit. `said` is whose limit it is, and what to do. */
export function bodyTooLarge(maxBytes: number, said = "send less"): Error {
  return problem("BODY_TOO_LARGE", `the body is larger than ${maxBytes} bytes; ${said}`);
}

/** Ends the connection over HTTP/1.1, and only the stream over HTTP/2. */
export function cut(raw: IncomingMessage | FastifyRequest["raw"]): void {
  const { stream } = raw as { readonly stream?: ServerHttp2Stream };
  if (stream === undefined) {
    // A request without a body is destroyed already, but its connection is not.
    raw.socket.destroy();
  } else {
    stream.close(constants.NGHTTP2_CANCEL);
  }
}

function only(chunks: readonly Buffer[]): Buffer | undefined {
  return chunks.length === 1 ? chunks[0] : undefined;
}

/** The data of an empty body. */
export const NO_BYTES: Uint8Array = new Uint8Array(0);

/** A body as a `google.api.HttpBody`. */
export function bodyMessage(contentType: string, data: Uint8Array): HttpBody {
  return { $typeName: "google.api.HttpBody", contentType, data, extensions: [] };
}

/** True for a form, of either kind. */
export function isForm({ headers }: FastifyRequest): boolean {
  return /^(?:multipart\/form-data|application\/x-www-form-urlencoded)\b/i.test(
    headers["content-type"] ?? "",
  );
}
