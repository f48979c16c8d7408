/**
 * The fast path of Connect: unary calls in JSON go through the invoker instead
 * of the library's handler, which is several times slower.
 * https://connectrpc.com/docs/protocol#unary-request
 */
import {
  type DescMethodUnary,
  type JsonValue,
  type Message,
  type Registry,
  toJson,
} from "@bufbuild/protobuf";
import { Code, type ContextValues } from "@connectrpc/connect";
import { compressionGzip } from "@connectrpc/connect-node";
import type { FastifyReply, FastifyRequest } from "fastify";
import { type Problem, problem, toProblem } from "../../../errors.ts";
import { refuseCharset } from "../../../service/input/charset.ts";
import { readBody } from "../../http/body.ts";
import { disconnectSignal } from "../../http/disconnect.ts";
import { addEmptyLists } from "../../http/empty-lists.ts";
import { connectStatus } from "../../http/error-status.ts";
import { isObject, parseJson } from "../../http/json.ts";
import { maxValuesOf, type ReadLarge } from "../../http/large-json.ts";
import { sendProblem } from "../../http/problem.ts";
import { decode } from "../../rest/decode.ts";
import type { Invoker } from "./invoker.ts";

export interface ConnectJsonOptions {
  readonly invoker: Invoker;
  readonly readMaxBytes: number;
  readonly contextValues: ((req: FastifyRequest) => ContextValues) | undefined;
  readonly readLarge: ReadLarge | undefined;
  /** The types of what `google.protobuf.Any` may hold. */
  readonly registry: Registry;
}

/** True for a request that `createConnectJsonHandler` serves. */
export function isConnectJson(req: FastifyRequest): boolean {
  return (
    req.method === "POST" &&
    /^application\/json\s*(?:;\s*charset="?utf-?8"?\s*)?$/i.test(
      req.headers["content-type"] ?? "",
    ) &&
    isKnownEncoding(req)
  );
}

/**
 * The error of a body that cannot be read: JSON in another charset than UTF-8, in calls and
 * streams, and compressed otherwise than with gzip, in calls. The library refuses both too, the
 * first without a body and the second without details.
 */
export function unreadable(req: FastifyRequest): Problem | undefined {
  const contentType = req.headers["content-type"] ?? "";
  if (/^application\/(?:json|proto)\b/i.test(contentType) && !isKnownEncoding(req)) {
    return problem(
      "CONTENT_TYPE_UNSUPPORTED",
      `unknown compression ${JSON.stringify(encodingOf(req))}: send the body as it is, or with gzip`,
      // https://connectrpc.com/docs/protocol#unary-request (Content-Encoding)
      { code: Code.Unimplemented },
    );
  }
  try {
    if (/^application\/(?:connect\+)?json\b/i.test(contentType)) {
      refuseCharset(contentType);
    }
    return undefined;
  } catch (thrown) {
    return toProblem(thrown);
  }
}

function isKnownEncoding(req: FastifyRequest): boolean {
  return ["identity", "gzip"].includes(encodingOf(req));
}

function encodingOf({ headers }: FastifyRequest): string {
  return headers["content-encoding"] ?? "identity";
}

/** Creates the handler of one method. */
export function createConnectJsonHandler(method: DescMethodUnary, options: ConnectJsonOptions) {
  const { invoker, readMaxBytes, contextValues, readLarge, registry } = options;
  const jsonOptions = { registry };
  return async (req: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    try {
      const timeoutMs = readTimeout(req);
      requireVersion(req);
      const body = await readBody(req, readMaxBytes);
      const plain =
        encodingOf(req) === "gzip" ? await compressionGzip.decompress(body, readMaxBytes) : body;
      const reading = readLarge?.(plain, method.input);
      const large = reading && (await reading);
      const json = parseJson(large?.body ?? plain, maxValuesOf(method.input));
      const message = read(method, json, registry);
      large?.restore(message);
      const answer = await invoker.unary(method, message, {
        header: req.headers,
        signal: disconnectSignal(reply),
        url: req.url,
        ...(timeoutMs === undefined ? {} : { timeoutMs }),
        ...(contextValues === undefined ? {} : { contextValues: contextValues(req) }),
      });
      for (const [name, value] of answer.header) {
        reply.header(name, value);
      }
      for (const [name, value] of answer.trailer) {
        reply.header(`trailer-${name}`, value);
      }
      const answered = toJson(method.output, answer.message, jsonOptions);
      addEmptyLists(method.output, answered, "jsonName");
      // Bytes, because Fastify adds a charset to strings, which the protocol does not allow.
      return reply
        .header("content-type", "application/json")
        .send(Buffer.from(JSON.stringify(answered)));
    } catch (thrown) {
      return sendConnectProblem(reply, toProblem(thrown));
    }
  };
}

/** Answers with an error as Connect has it for unary calls. */
export function sendConnectProblem(reply: FastifyReply, found: Problem): FastifyReply {
  return sendProblem(reply, found, {
    // Of content types, the protocol says the status and not the code.
    status:
      found.reason === "CONTENT_TYPE_UNSUPPORTED" && found.code === Code.InvalidArgument
        ? 415
        : connectStatus(found.code),
    type: "application/json",
  });
}

function read(method: DescMethodUnary, json: JsonValue, registry: Registry): Message {
  if (!isObject(json)) {
    throw problem("BODY_MALFORMED", "the body must be a JSON object");
  }
  // Strict about names, unlike the binary format: in JSON, a field that is not known is a slip of
  // the hand more often than a newer client.
  return decode(method.input, json, registry);
}

function readTimeout(req: FastifyRequest): number | undefined {
  const value = req.headers["connect-timeout-ms"];
  if (value === undefined) {
    return undefined;
  }
  if (typeof value !== "string" || !/^\d{1,10}$/.test(value)) {
    throw problem("REQUEST_INVALID", `connect-timeout-ms "${value}" is not up to 10 digits`);
  }
  return Number(value);
}

function requireVersion(req: FastifyRequest): void {
  const version = req.headers["connect-protocol-version"];
  if (version !== undefined && version !== "1") {
    throw problem("REQUEST_INVALID", `connect-protocol-version must be "1", not "${version}"`);
  }
}
