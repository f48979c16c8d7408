/** Streaming of metrics pages. */
import { Readable } from "node:stream";
import { createGzip } from "node:zlib";
import type { FastifyReply, FastifyRequest } from "fastify";
import { TEXT_FORMAT } from "../../metrics/federate.ts";

/** Streams a page in the text format of Prometheus, compressed if the client accepts gzip. */
export function sendText(
  req: FastifyRequest,
  reply: FastifyReply,
  chunks: AsyncIterable<string | Uint8Array>,
): FastifyReply {
  void reply.type(TEXT_FORMAT).header("vary", "accept-encoding");
  const text = Readable.from(chunks, { objectMode: true, highWaterMark: 2 });
  if (!acceptsGzip(req.headers["accept-encoding"])) {
    return reply.send(text);
  }
  // The lines are so alike that the fastest level compresses them nearly as well.
  const gzip = createGzip({ level: 1 });
  text.once("error", (err) => gzip.destroy(err));
  gzip.once("close", () => text.destroy());
  return reply.header("content-encoding", "gzip").send(text.pipe(gzip));
}

function acceptsGzip(header: string | string[] | undefined): boolean {
  return String(header ?? "")
    .split(",")
    .some((one) => /^\s*(?:gzip|\*)\s*(?:;\s*q=(?!0(?:\.0*)?\s*$)[\d.]+\s*)?$/i.test(one));
}
