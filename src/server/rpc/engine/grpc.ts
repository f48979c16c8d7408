/**
 * The fast path of gRPC: unary calls in binary form go through the invoker instead of the library's
 * handler, which is several times slower.
 * https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
 */
import type { Http2ServerResponse } from "node:http2";
import { type DescMethodUnary, type Message, toBinary } from "@bufbuild/protobuf";
import { Code, type ContextValues, createContextValues } from "@connectrpc/connect";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import {
  contentTypeProto,
  grpcStatusOk,
  setTrailerStatus,
} from "@connectrpc/connect/protocol-grpc";
import { compressionGzip } from "@connectrpc/connect-node";
import type { FastifyReply, FastifyRequest } from "fastify";
import { type Problem, problem, toProblem } from "../../../errors.ts";
import { within } from "../../../time/race.ts";
import { readBody } from "../../http/body.ts";
import { disconnectSignal } from "../../http/disconnect.ts";
import { arrivalOf } from "./caller.ts";
import { grpcTimeoutOf, timedOut } from "./deadline.ts";
import { type ReportProblem, told } from "./errors.ts";
import type { Invoker } from "./invoker.ts";
import { COMPRESSED, decodedBinary, type ScanOptions, unpackedEnvelope } from "./scan.ts";

/** Bytes before a message: its flags, and its length as 32 bits. */
const PREFIX_BYTES = 5;

/** Messages from this length on are compressed for callers that take it, as the library does. */
const MIN_COMPRESSED_BYTES = 1_024;

/** Prefix of the metadata of an error that is of its trailers (`RpcContext.withMetadata`). */
const TRAILER_PREFIX = "trailer-";

interface GrpcOptions {
  readonly invoker: Invoker;
  readonly scan: ScanOptions;
  readonly contextValues: ((req: FastifyRequest) => ContextValues) | undefined;
  readonly report: ReportProblem;
}

/**
 * True for a request that `createGrpcHandler` serves: all of unary gRPC in binary form, but for
 * what its headers say wrongly, which the library refuses.
 */
export function isGrpc({ method, raw, headers }: FastifyRequest): boolean {
  const { "grpc-encoding": encoding, "grpc-timeout": timeout } = headers;
  return (
    method === "POST" &&
    "stream" in raw &&
    /^application\/grpc(?:\+proto)?$/i.test(headers["content-type"] ?? "") &&
    (encoding === undefined || encoding === "identity" || encoding === "gzip") &&
    (timeout === undefined || grpcTimeoutOf(String(timeout)) !== undefined)
  );
}

/** Creates the handler of one method. The reply is hijacked, and ends its request. */
export function createGrpcHandler(method: DescMethodUnary, options: GrpcOptions) {
  const { invoker, scan, contextValues, report } = options;
  return async (req: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const values = contextValues?.(req) ?? createContextValues();
    const isPacked = /(?:^|,)\s*gzip\s*(?:,|$)/.test(String(req.headers["grpc-accept-encoding"]));
    const head = { ...reply.getHeaders(), "content-type": contentTypeProto };
    try {
      const begunMs = performance.now();
      const allowedMs = grpcTimeoutOf(String(req.headers["grpc-timeout"]));
      const reading = readMessage(req, scan);
      const message = await (allowedMs === undefined
        ? reading
        : within(reading, allowedMs, () => {
            throw timedOut(allowedMs);
          }));
      const answer = await invoker.unary(method, message, {
        header: req.headers,
        signal: disconnectSignal(reply),
        url: req.url,
        contextValues: values,
        ...(allowedMs !== undefined && {
          timeoutMs: allowedMs - Math.floor(performance.now() - begunMs),
        }),
      });
      const data = toBinary(method.output, answer.message);
      const body =
        isPacked && data.length >= MIN_COMPRESSED_BYTES
          ? encodeEnvelope(COMPRESSED, await compressionGzip.compress(data))
          : encodeEnvelope(0, data);
      end(reply, {
        head: { ...head, ...fieldsOf(answer.header), ...(isPacked && { "grpc-encoding": "gzip" }) },
        body,
        trailers: { ...fieldsOf(answer.trailer), "grpc-status": grpcStatusOk },
      });
    } catch (thrown) {
      const found = toProblem(thrown);
      report(found, { url: req.url, contextValues: values });
      const { requestId } = arrivalOf(values);
      const shown = requestId === "" ? found : told(found, requestId);
      end(reply, { head, trailers: trailersOf(shown) });
    }
  };
}

interface Answer {
  readonly head: Fields;
  readonly body?: Uint8Array;
  readonly trailers: Fields;
}

type Fields = { readonly [name: string]: number | string | string[] | undefined };

function end({ raw }: FastifyReply, { head, body, trailers }: Answer): void {
  const res = raw as unknown as Http2ServerResponse;
  // The caller may have gone meanwhile.
  if (res.stream.destroyed || res.headersSent) {
    return;
  }
  res.writeHead(200, head as Record<string, string>);
  res.addTrailers(trailers as Record<string, string>);
  if (body === undefined) {
    res.end();
  } else {
    res.end(body);
  }
}

/** The trailers of an error, with what the implementation said in headers. */
function trailersOf(found: Problem): Fields {
  const trailers = setTrailerStatus(new Headers(), found);
  for (const [name, value] of [...trailers]) {
    if (name.startsWith(TRAILER_PREFIX)) {
      trailers.delete(name);
      trailers.append(name.slice(TRAILER_PREFIX.length), value);
    }
  }
  return fieldsOf(trailers);
}

function fieldsOf(headers: Headers): Fields {
  const fields: Record<string, string | string[]> = {};
  for (const [name, value] of headers) {
    const before = fields[name];
    // Cookies come one by one.
    fields[name] = before === undefined ? value : [before, value].flat();
  }
  return fields;
}

/** Rejects with BODY_MALFORMED, BODY_TOO_LARGE or SERVER_BUSY. */
async function readMessage(req: FastifyRequest, options: ScanOptions): Promise<Message> {
  const { readMaxBytes } = options;
  const body = await readBody(req, readMaxBytes + PREFIX_BYTES, { announced: lengthOf });
  if (body.length === 0) {
    throw problem("BODY_MALFORMED", "the call carries no message", { code: Code.Unimplemented });
  }
  const length = lengthOf(body);
  if (body.length < length || body.length < PREFIX_BYTES) {
    throw problem("BODY_MALFORMED", "the message ended before the length that it announces");
  }
  if (body.length > length) {
    throw problem("BODY_MALFORMED", "the call carries more than one message", {
      code: Code.Unimplemented,
    });
  }
  const { "grpc-encoding": encoding } = req.headers;
  const envelope = { flags: body[0] ?? 0, data: body.subarray(PREFIX_BYTES) };
  return decodedBinary(await unpackedEnvelope(envelope, encoding, options), options);
}

/** The length of a body by its prefix; 0 where that is not whole. */
function lengthOf(body: Buffer): number {
  return body.length < PREFIX_BYTES ? 0 : PREFIX_BYTES + body.readUInt32BE(1);
}
