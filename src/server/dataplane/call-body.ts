/** The body of a call: a form or a file is streamed beside the message, any other body is part of it. */
import type { ContextValues } from "@connectrpc/connect";
import type { FastifyRequest } from "fastify";
import type { HttpBody } from "../../../gen/google/api/httpbody_pb.js";
import { toProblem } from "../../errors.ts";
import { bodyMessage, bodyTooLarge, isForm, NO_BYTES } from "../http/body.ts";
import { BodyStream } from "../http/body-stream.ts";
import { decodedStream, readDecoded } from "../http/decoded-body.ts";
import { type FileBeside, type StreamedBodies, streamedBodies } from "../http/streamed-bodies.ts";

/** How much of a body is read. */
export interface BodyLimits {
  readonly maxBytes: number;
  /** Of a form or a file: how much of it is held in memory. */
  readonly maxHeldBytes: number;
  /** Which setting the limit is, and what to do about it. */
  readonly said: string;
}

/** The bodies of a call that travel outside its messages. */
export function bodiesOf(contextValues: ContextValues): StreamedBodies {
  const bodies: StreamedBodies = {};
  contextValues.set(streamedBodies, bodies);
  return bodies;
}

/** The input of a call whose body is a file, as it is, beside other arguments. */
export function readFile(
  req: FastifyRequest,
  bodies: StreamedBodies,
  { limits, beside }: { readonly limits: BodyLimits; readonly beside: FileBeside },
): { readonly case: "body"; readonly value: HttpBody } {
  const { maxBytes, maxHeldBytes } = limits;
  const contentType = req.headers["content-type"] ?? "application/octet-stream";
  const chunks = new BodyStream(req, { maxBytes });
  const hold = (bytes: number) => req.bodyShare?.hold(bytes);
  hold(Math.min(Number(req.headers["content-length"] ?? maxBytes), maxHeldBytes));
  bodies.request = { contentType, chunks, maxHeldBytes, hold, beside };
  return { case: "body", value: bodyMessage(contentType, NO_BYTES) };
}

/** The input of a call, whose body is in it unless it is put into `bodies`. */
export async function readInput(
  req: FastifyRequest,
  bodies: StreamedBodies,
  { maxBytes, maxHeldBytes, said }: BodyLimits,
): Promise<{ readonly case: "body"; readonly value: HttpBody }> {
  const contentType = req.headers["content-type"] ?? "";
  if (!isForm(req)) {
    try {
      const value = bodyMessage(contentType, await readDecoded(req, maxBytes));
      return { case: "body", value };
    } catch (err) {
      throw toProblem(err).reason === "BODY_TOO_LARGE" ? bodyTooLarge(maxBytes, said) : err;
    }
  }
  const chunks = decodedStream(req, maxBytes);
  const hold = (bytes: number) => req.bodyShare?.hold(bytes);
  bodies.request = { contentType, chunks, maxHeldBytes, hold };
  return { case: "body", value: bodyMessage(contentType, NO_BYTES) };
}
