/** Sends a text that is made while it is sent. */
import { Readable } from "node:stream";
import { createGzip } from "node:zlib";
import type { FastifyReply, FastifyRequest } from "fastify";
import { TEXT_FORMAT } from "../../metrics/federate.ts";

/** In the text format of Prometheus, compressed where that is wished for. */
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
  // Numbers that hardly differ: the fastest level makes them nearly as small.
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
