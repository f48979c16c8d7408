/**
 * Content codings of requests (RFC 9110, section 8.4): a body that was sent compressed is inflated
 * as it arrives, and what is bounded is what comes out of it. A bomb of a few kilobytes so costs
 * no more than the largest body. The work is done on the threads of zlib.
 */
import { Readable } from "node:stream";
import zlib from "node:zlib";
import type { FastifyRequest } from "fastify";
import { type Problem, type ProblemOptions, problem, toProblem } from "../../errors.ts";
import { BodyStream, bodyTooLarge, readBody } from "./body.ts";

/** Memory of one zstd frame in powers of two: the 8 MiB that RFC 9659 allows over HTTP. */
const MAX_ZSTD_WINDOW_LOG = 23;

const DECODERS = {
  gzip: () => zlib.createGunzip(),
  deflate: () => zlib.createInflate(),
  br: () => zlib.createBrotliDecompress(),
  zstd: () =>
    zlib.createZstdDecompress({
      params: { [zlib.constants.ZSTD_d_windowLogMax]: MAX_ZSTD_WINDOW_LOG },
    }),
} as const;

type Coding = keyof typeof DECODERS;

/** The codings that are read. */
export const CODINGS = Object.keys(DECODERS) as readonly Coding[];

/** Reads the whole body as `readBody` does, inflated. Errors: also CONTENT_TYPE_UNSUPPORTED. */
export function readDecoded(req: FastifyRequest, maxBytes: number): Promise<Buffer> {
  return req.headers["content-encoding"] === undefined
    ? readBody(req, maxBytes)
    : readInflated(req, maxBytes);
}

async function readInflated(req: FastifyRequest, maxBytes: number): Promise<Buffer> {
  const coding = codingOf(req);
  if (coding === undefined) {
    return readBody(req, maxBytes);
  }
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of inflated(new BodyStream(req, { maxBytes }), coding, maxBytes)) {
    size += chunk.length;
    req.bodyShare?.hold(size);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** A body as a stream, as `BodyStream`, inflated. Throws CONTENT_TYPE_UNSUPPORTED. */
export function decodedStream(req: FastifyRequest, maxBytes: number): AsyncIterable<Uint8Array> {
  const coding = codingOf(req);
  const chunks = new BodyStream(req, { maxBytes });
  return coding === undefined ? chunks : inflated(chunks, coding, maxBytes);
}

/** The error of a body in another coding; says which are read (RFC 9110, section 12.5.3). */
export function unreadCoding(
  req: FastifyRequest,
  codings: readonly string[],
  options?: ProblemOptions,
): Problem {
  const message = `the content encoding ${JSON.stringify(nameOf(req))} is not read here: send the body as it is, or with ${codings.join(", ")}`;
  const found = problem("CONTENT_TYPE_UNSUPPORTED", message, options);
  found.metadata.set("accept-encoding", codings.join(", "));
  return found;
}

/** Whether a body in this coding can be read. */
export function isRead(req: FastifyRequest): boolean {
  const name = nameOf(req);
  return name === "identity" || CODINGS.includes(name as Coding);
}

function codingOf(req: FastifyRequest): Coding | undefined {
  if (req.headers["content-encoding"] === undefined) {
    return undefined;
  }
  if (!isRead(req)) {
    throw unreadCoding(req, CODINGS);
  }
  const name = nameOf(req);
  return name === "identity" ? undefined : (name as Coding);
}

/** The name of the coding, `identity` for none. Several in a row are one name that nobody knows. */
export function nameOf({ headers }: FastifyRequest): string {
  const name = (headers["content-encoding"] ?? "").trim().toLowerCase();
  return name === "x-gzip" ? "gzip" : name || "identity";
}

/** Errors: BODY_TOO_LARGE, BODY_MALFORMED, and those of the chunks. */
async function* inflated(
  chunks: AsyncIterable<Uint8Array>,
  coding: Coding,
  maxBytes: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  const decoder = DECODERS[coding]();
  let received = 0;
  const source = Readable.from(
    (async function* () {
      for await (const chunk of chunks) {
        received += chunk.length;
        yield chunk;
      }
    })(),
    { objectMode: false },
  );
  source.on("error", (err) => decoder.destroy(err));
  decoder.on("error", () => {
    // Its reader knows. One of zstd may come when nobody does any more, and would end the process.
  });
  source.pipe(decoder);
  let size = 0;
  try {
    for await (const chunk of decoder as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > maxBytes) {
        throw bodyTooLarge(maxBytes);
      }
      yield chunk;
    }
    if (decoder.bytesWritten < received) {
      throw malformed(coding, "it goes on after its end");
    }
  } catch (err) {
    // No body at all is not compressed either.
    if (received > 0 || source.errored !== null) {
      const isOurs = toProblem(err).reason !== "INTERNAL";
      throw isOurs ? err : malformed(coding, err instanceof Error ? err.message : String(err));
    }
  } finally {
    source.destroy();
  }
}

function malformed(coding: Coding, detail: string): Error {
  return problem(
    "BODY_MALFORMED",
    `the body is not ${coding}, as its Content-Encoding says: ${detail}`,
  );
}
