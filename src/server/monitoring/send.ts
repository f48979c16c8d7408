/** Streaming of metrics pages. */
import { Readable } from "node:stream";
import type { FastifyReply } from "fastify";
import { TEXT_FORMAT } from "../../metrics/federate.ts";
import { acceptedCoding, compressor } from "../http/compression.ts";

/** Streams a page in the text format of Prometheus, compressed if the client accepts it. */
export function sendText(
  reply: FastifyReply,
  chunks: AsyncIterable<string | Uint8Array>,
): FastifyReply {
  const coding = acceptedCoding(reply.type(TEXT_FORMAT));
  const text = Readable.from(chunks, { objectMode: true, highWaterMark: 2 });
  if (coding === undefined) {
    return reply.send(text);
  }
  const packed = compressor(reply, coding);
  text.once("error", (err) => packed.destroy(err));
  packed.once("close", () => text.destroy());
  return reply.send(text.pipe(packed));
}
