/** Reading of request bodies, whole or as streams: bounded in size and time, each alone and all together. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { constants, type ServerHttp2Stream } from "node:http2";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { HttpBody } from "../../../gen/google/api/httpbody_pb.js";
import { giveBack } from "../../collections/bytes.ts";
import { SharedBound } from "../../collections/shared-bound.ts";
import { problem } from "../../errors.ts";
import { raceAbort } from "../../time/race.ts";

/**
 * Rest of a refused body that is thrown away, so that its sender gets to read the answer,
 * before its connection is cut.
 */
const MAX_DISCARDED_BYTES = 256 * 1024 * 1024;

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
    const onBreak = () => this.#break();
    raw.on("error", onBreak);
    raw.on("close", onBreak);
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
      this.#options.reject(broken());
    }
  }

  #late(limitMs: number): void {
    this.#refuse(late(limitMs));
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

// Back-pressure on request bodies: a budget of bytes that a server holds at a
// time. Each body has its own limit, but many bodies within it can be too much
// together. A body counts from the start of its reading until its response is
// sent, with the length that its request announces or with what has arrived,
// whichever is larger.

/** The `retry-after` of requests that are refused because bodies under way fill their memory. */
const BODY_BUDGET_RETRY_AFTER_MS = 1_000;

declare module "fastify" {
  interface FastifyRequest {
    /** The body's share of the server's budget; absent for GET and HEAD, and on a server without a budget. */
    bodyShare?: BodyShare;
  }
}

/** The budget of one server. */
export class BodyBudget {
  readonly #bound: SharedBound;

  /** @param share of one organization; see `SharedBound`. */
  constructor(maxBytes: number, share?: number) {
    this.#bound = new SharedBound(maxBytes, share);
  }

  /** Bytes held now. */
  get takenBytes(): number {
    return this.#bound.taken;
  }

  /** Takes bytes for an organization; throws SERVER_BUSY if fewer are left. */
  take(organizationId: string, bytes: number): void {
    if (!this.#bound.take(organizationId, bytes)) {
      const message = `the server holds as many bytes of request bodies as it may (${this.#bound.refusal(organizationId, bytes)}): try again`;
      throw problem("SERVER_BUSY", message, { retryAfterMs: BODY_BUDGET_RETRY_AFTER_MS });
    }
  }

  /** Gives bytes back. */
  give(organizationId: string, bytes: number): void {
    this.#bound.give(organizationId, bytes);
  }
}

/** One request's share of a budget. */
export class BodyShare {
  readonly #budget: BodyBudget;
  /** Empty while it is not known. */
  #organizationId = "";
  #heldBytes = 0;
  #released = false;

  constructor(budget: BodyBudget) {
    this.#budget = budget;
  }

  /** The request is for this organization; what it holds already stays as it is. */
  of(organizationId: string): void {
    if (this.#heldBytes === 0) {
      this.#organizationId = organizationId;
    }
  }

  /** Raises the share to `bytes` in total; never lowers it. Errors: SERVER_BUSY. */
  hold(bytes: number): void {
    if (bytes > this.#heldBytes && !this.#released) {
      this.#budget.take(this.#organizationId, bytes - this.#heldBytes);
      this.#heldBytes = bytes;
    }
  }

  /** Gives everything back; from then on the share takes nothing. */
  release(): void {
    if (!this.#released) {
      this.#released = true;
      this.#budget.give(this.#organizationId, this.#heldBytes);
    }
  }
}

/** Gives each request that may have a body a share of the budget until its response is sent. */
export function shareBudget(app: FastifyInstance, budget: BodyBudget): void {
  app.decorateRequest("bodyShare");
  app.addHook("onRequest", (req, reply, done) => {
    if (req.method !== "GET" && req.method !== "HEAD") {
      const share = new BodyShare(budget);
      req.bodyShare = share;
      reply.raw.on("close", () => share.release());
    }
    done();
  });
}

// Streaming of request bodies, bounded in size and time.

interface BodyStreamOptions {
  readonly maxBytes: number;
  /** From the first read to the arrival of the last byte. */
  readonly deadlineMs?: number;
}

/**
 * A request's body as a stream, for one reader. Errors: BODY_TOO_LARGE as soon
 * as that is known; BODY_MALFORMED when the sender stops before the end or
 * exceeds the deadline. It takes nothing from the budget for bodies: the
 * reader holds what it keeps.
 */
export class BodyStream implements AsyncIterable<Uint8Array> {
  readonly #req: FastifyRequest;
  readonly #options: BodyStreamOptions;
  #size = 0;

  constructor(req: FastifyRequest, options: BodyStreamOptions) {
    this.#req = req;
    this.#options = options;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    const { raw, headers } = this.#req;
    const { maxBytes, deadlineMs = BODY_DEADLINE_MS } = this.#options;
    const tooLate = new AbortController();
    const deadline = setTimeout(() => tooLate.abort(), deadlineMs);
    const chunks = raw.iterator({ destroyOnReturn: false });
    try {
      this.#bound(Number(headers["content-length"] ?? 0), maxBytes);
      for (;;) {
        const next = chunks.next().catch((cause: unknown) => {
          throw broken(cause);
        });
        const { done, value } = await raceAbort(next, tooLate.signal);
        if (done) {
          return;
        }
        this.#size += value.length;
        this.#bound(this.#size, maxBytes);
        yield value;
      }
    } catch (err) {
      throw tooLate.signal.aborted ? late(deadlineMs) : err;
    } finally {
      clearTimeout(deadline);
      if (tooLate.signal.aborted) {
        setTimeout(() => cut(raw), LATE_BODY_ANSWER_MS).unref();
      } else {
        await chunks.return?.();
        this.#discardRest(deadlineMs);
      }
    }
  }

  /** Discards the rest, so that the sender can read the answer; cuts the request if the rest is large or late. */
  #discardRest(withinMs: number): void {
    const { raw } = this.#req;
    if (raw.readableEnded || raw.destroyed) {
      return;
    }
    let size = this.#size;
    raw.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > this.#size + MAX_DISCARDED_BYTES) {
        cut(raw);
      }
    });
    const deadline = setTimeout(() => cut(raw), withinMs).unref();
    raw.once("close", () => clearTimeout(deadline));
    raw.once("end", () => clearTimeout(deadline));
    raw.on("error", () => {
      // The sender has gone, and has its answer or did not want it.
    });
    raw.resume();
  }

  #bound(bytes: number, maxBytes: number): void {
    if (bytes > maxBytes) {
      throw bodyTooLarge(maxBytes);
    }
  }
}

function late(deadlineMs: number): Error {
  const message = `the body did not arrive in time: it may take ${deadlineMs / 1000} s`;
  return problem("BODY_MALFORMED", message);
}

function broken(cause?: unknown): Error {
  return problem("BODY_MALFORMED", "the body ended before its end", { cause });
}
