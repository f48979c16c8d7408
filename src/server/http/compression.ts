/**
 * Compression of answers (RFC 9110, sections 8.4 and 12.5.3), where the client accepts it. What is
 * short stays as it is, and so does what a stream tells piece by piece, and what is compressed
 * already: pictures, archives, bytes of unknown type. The work is done on the threads of zlib, at
 * a speed of hundreds of megabytes a second.
 *
 * The same bytes compressed are another representation, so its `ETag` is weak, and ranges of it
 * are not offered; `Vary` tells caches. Which codings a client accepts is read by the library that
 * serves static files, so that all answers follow one reading.
 */
import type { Transform } from "node:stream";
import { promisify } from "node:util";
import zlib from "node:zlib";
import { negotiate } from "@fastify/accept-negotiator";
import type { FastifyReply } from "fastify";

/** Bytes of an answer from which on it is compressed: in fewer, little is saved. */
const MIN_COMPRESSED_BYTES = 1_024;

/** The fastest: the next one saves a tenth of the bytes for twice the time. */
const MIN_GZIP_LEVEL = 1;

/** Codings of answers, the preferred one first. */
const CODINGS = ["zstd", "gzip"] as const;

type Coding = (typeof CODINGS)[number];

const pack = {
  zstd: promisify<zlib.InputType, Buffer>(zlib.zstdCompress),
  gzip: (data: zlib.InputType): Promise<Buffer> =>
    promisify<zlib.InputType, zlib.ZlibOptions, Buffer>(zlib.gzip)(data, { level: MIN_GZIP_LEVEL }),
};

const COMPRESSIBLE =
  /^(?:text\/(?!event-stream)|application\/(?:json|xml|yaml|javascript|x-ndjson|jsonl)\b|image\/svg\+xml|[^;]+\+(?:json|xml)\b)/i;

/**
 * The coding of an answer of this size, whose content type is set; undefined: as it is. Sets `Vary`
 * where it depends on the client.
 */
export function codingFor(reply: FastifyReply, bytes: number): Coding | undefined {
  if (bytes < MIN_COMPRESSED_BYTES || !isCompressible(reply)) {
    return undefined;
  }
  return acceptedCoding(reply);
}

/** The coding of a text of unknown size, of those that it can have. Sets `Vary`. */
export function acceptedCoding(
  reply: FastifyReply,
  codings: readonly Coding[] = CODINGS,
): Coding | undefined {
  vary(reply, "accept-encoding");
  const accepted = reply.request.headers["accept-encoding"];
  return accepted === undefined
    ? undefined
    : (negotiate(String(accepted).toLowerCase(), [...codings]) ?? undefined);
}

function isCompressible(reply: FastifyReply): boolean {
  return (
    COMPRESSIBLE.test(String(reply.getHeader("content-type") ?? "")) &&
    !reply.hasHeader("content-encoding") &&
    !/\bno-transform\b/i.test(String(reply.getHeader("cache-control") ?? ""))
  );
}

/** Adds a name to `Vary`. */
export function vary(reply: FastifyReply, name: string): void {
  const names = [reply.getHeader("vary") ?? []].flat().join(", ");
  if (
    !names
      .toLowerCase()
      .split(/[\s,]+/)
      .includes(name.toLowerCase())
  ) {
    reply.header("vary", names === "" ? name : `${names}, ${name}`);
  }
}

/** Sends an answer that is in memory; a promise only if it is compressed. */
export function sendCompressed(
  reply: FastifyReply,
  content: string | Buffer,
  coding: Coding | undefined = codingFor(reply, content.length),
): void | Promise<void> {
  if (coding === undefined) {
    reply.send(content);
    return;
  }
  return pack[coding](content).then((packed) => {
    reply.header("content-encoding", coding).send(packed);
  });
}

/** Compresses a stream; sets `Content-Encoding`. */
export function compressor(reply: FastifyReply, coding: Coding): Transform {
  reply.header("content-encoding", coding);
  return coding === "zstd" ? zlib.createZstdCompress() : zlib.createGzip({ level: MIN_GZIP_LEVEL });
}
