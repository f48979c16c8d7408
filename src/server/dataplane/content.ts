/**
 * Conditional and range requests for results: validators, preconditions and
 * ranges of RFC 9110, sections 8.8, 13 and 14. A request for several ranges
 * gets the whole result, which the RFC allows. A whole result may be compressed; a range never is.
 *
 * The `ETag` of a short result is its task and its length: a result never
 * changes, and a digest of it costs more than sending it. Large ones have the
 * digest that the blob store asks for.
 */
import { pipeline, Readable } from "node:stream";
import { Code } from "@connectrpc/connect";
import type { FastifyReply, FastifyRequest } from "fastify";
import { problem } from "../../errors.ts";
import { codingFor, compressor, sendCompressed } from "../http/compression.ts";
import { sendProblem } from "../http/problem.ts";
import type { StreamedResponse } from "../http/streamed-bodies.ts";

/** Content in memory, or a stream. Head and body of a text leave in one write. */
type Content = string | Buffer | StreamedResponse;

/** A promise if the answer has to wait for its first bytes. */
type Sent = void | Promise<void>;

type Coding = ReturnType<typeof codingFor>;

/** Sends the whole content. The reply has its content type already. */
export function sendWhole(
  reply: FastifyReply,
  content: Content,
  coding: Coding = codingFor(reply, isStreamed(content) ? content.size : content.length),
): Sent {
  if (!isStreamed(content)) {
    return sendCompressed(reply, content, coding);
  }
  if (coding === undefined) {
    reply.header("content-length", content.size);
  }
  return sendStream(reply, content, { start: 0, end: content.size, coding });
}

function sizeOf(content: Content): number {
  return isStreamed(content) ? content.size : Buffer.byteLength(content);
}

/** Answers without content, for a status that has none. */
export function sendNothing(reply: FastifyReply, content: Content): void {
  finish(reply, content);
  reply.removeHeader("content-type");
  reply.removeHeader("content-disposition");
  reply.send();
}

function isStreamed(content: Content): content is StreamedResponse {
  return typeof content !== "string" && !Buffer.isBuffer(content);
}

/** A request for a task's result. */
export interface ResultQuery {
  readonly req: FastifyRequest;
  /** The task that the result is of. */
  readonly taskId: string;
}

/** Answers a GET or HEAD request, by its conditions and its range. */
export function sendAsked(
  { req, taskId }: ResultQuery,
  reply: FastifyReply,
  content: Content,
): Sent {
  const size = sizeOf(content);
  // A result never changes. If a revision sends it as text and another as JSON, its length differs.
  const etag = `"${isStreamed(content) ? content.sha256 : `${taskId}-${size}`}"`;
  const { headers } = req;
  const range = req.method === "GET" ? headers.range : undefined;
  const applies = range !== undefined && (headers["if-range"] ?? etag) === etag;
  const asked = applies ? readRange(range, size) : undefined;
  const coding = asked === undefined ? codingFor(reply, size) : undefined;
  if (coding === undefined) {
    reply.header("etag", etag).header("accept-ranges", "bytes");
  } else {
    reply.header("etag", `W/${etag}`);
  }
  if (headers["if-none-match"] !== undefined && lists(headers["if-none-match"], etag)) {
    finish(reply, content);
    reply.removeHeader("content-type");
    reply.removeHeader("content-disposition");
    reply.code(304).send();
    return;
  }
  if (asked === "unsatisfiable") {
    finish(reply, content);
    reply.header("content-range", `bytes */${size}`);
    reply.removeHeader("content-disposition");
    const message = `the result has ${size} bytes, none of which are in the range ${range}`;
    const found = problem("REQUEST_INVALID", message, { code: Code.OutOfRange });
    sendProblem(reply, found, { status: 416 });
    return;
  }
  if (asked !== undefined) {
    const { start, end } = asked;
    reply.code(206).header("content-range", `bytes ${start}-${end - 1}/${size}`);
    reply.header("content-length", end - start);
    if (isStreamed(content)) {
      return sendStream(reply, content, asked);
    }
    const bytes = typeof content === "string" ? Buffer.from(content) : content;
    reply.send(bytes.subarray(start, end));
    return;
  }
  if (req.method === "HEAD" && isStreamed(content)) {
    finish(reply, content);
    // How long it is when it is compressed, nobody knows before.
    reply.header(coding ? "content-encoding" : "content-length", coding ?? size).send();
    return;
  }
  return sendWhole(reply, content, coding);
}

interface AskedRange {
  readonly start: number;
  /** After the last byte. */
  readonly end: number;
}

/** The single requested range; undefined for an invalid header or several ranges, which are ignored. */
function readRange(text: string, size: number): AskedRange | "unsatisfiable" | undefined {
  const [, first = "", last = ""] = /^bytes\s*=\s*(\d*)\s*-\s*(\d*)\s*$/i.exec(text) ?? [];
  if (first === "" && last === "") {
    return undefined;
  }
  if (first === "") {
    const start = Math.max(0, size - Number(last));
    return start < size ? { start, end: size } : "unsatisfiable";
  }
  const start = Number(first);
  if (last !== "" && Number(last) < start) {
    return undefined;
  }
  const end = last === "" ? size : Math.min(size, Number(last) + 1);
  return start < size ? { start, end } : "unsatisfiable";
}

/** Weak comparison, which `If-None-Match` uses. */
function lists(text: string, etag: string): boolean {
  return text
    .split(",")
    .map((each) => each.trim().replace(/^W\//, ""))
    .some((each) => each === "*" || each === etag);
}

/** Headers that an error must not have. */
const CONTENT_HEADERS = [
  "etag",
  "accept-ranges",
  "content-range",
  "content-length",
  "content-disposition",
  "content-encoding",
];

/** Sends a stream; rejects if its first read fails, so that an error can still be answered. */
async function sendStream(
  reply: FastifyReply,
  content: StreamedResponse,
  { coding, ...range }: AskedRange & { readonly coding?: Coding },
): Promise<void> {
  const chunks = content.read(range)[Symbol.asyncIterator]();
  finish(reply, content);
  try {
    const first = await chunks.next();
    const bytes = Readable.from(new Resumed(first, chunks), { objectMode: false });
    // Each ends the other; a failure breaks the connection.
    const sent = coding ? pipeline(bytes, compressor(reply, coding), () => {}) : bytes;
    reply.send(sent);
  } catch (err) {
    for (const name of CONTENT_HEADERS) {
      reply.removeHeader(name);
    }
    throw err;
  }
}

/** An iterator whose first chunk was read already. Leaving it closes the source, even before the first chunk. */
class Resumed implements AsyncIterable<Uint8Array>, AsyncIterator<Uint8Array> {
  readonly #rest: AsyncIterator<Uint8Array>;
  #first: IteratorResult<Uint8Array> | undefined;

  constructor(first: IteratorResult<Uint8Array>, rest: AsyncIterator<Uint8Array>) {
    this.#first = first;
    this.#rest = rest;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    const first = this.#first;
    this.#first = undefined;
    return first ?? this.#rest.next();
  }

  async return(): Promise<IteratorResult<Uint8Array>> {
    await this.#rest.return?.();
    return { done: true, value: undefined };
  }
}

/** Closes the source when the answer is sent or the caller has gone. */
function finish({ raw }: FastifyReply, content: Content): void {
  if (!isStreamed(content)) {
    return;
  }
  if (raw.closed) {
    content.done();
  } else {
    raw.once("close", () => content.done());
  }
}
