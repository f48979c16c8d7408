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
import type { FastifyReply, FastifyRequest } from "fastify";
import { type Problem, problem, toProblem } from "../../../errors.ts";
import { refuseCharset } from "../../../service/input/charset.ts";
import { sendCompressed } from "../../http/compression.ts";
import { CODINGS, isRead, nameOf, readDecoded, unreadCoding } from "../../http/decoded-body.ts";
import { disconnectSignal } from "../../http/disconnect.ts";
import { addEmptyLists } from "../../http/empty-lists.ts";
import { connectStatus } from "../../http/error-status.ts";
import { isObject, parseJson } from "../../http/json.ts";
import { maxValuesOf, type ReadLarge } from "../../http/large-json.ts";
import { sendProblem } from "../../http/problem.ts";
import { decode } from "../../rest/decode.ts";
import type { Invoker } from "./invoker.ts";

interface ConnectJsonOptions {
  readonly invoker: Invoker;
  readonly readMaxBytes: number;
  readonly contextValues: ((req: FastifyRequest) => ContextValues) | undefined;
  readonly readLarge: ReadLarge | undefined;
  /** The types of what `google.protobuf.Any` may hold. */
  readonly registry: Registry;
}

/** True for a request that `createConnectJsonHandler` serves. */
export function isConnectJson(req: FastifyRequest): boolean {
  return req.method === "POST" && isJson(req) && isRead(req);
}

function isJson({ headers }: FastifyRequest): boolean {
  return /^application\/json\s*(?:;\s*charset="?utf-?8"?\s*)?$/i.test(
    headers["content-type"] ?? "",
  );
}

/**
 * The error of a body that cannot be read: JSON in another charset than UTF-8, in calls and
 * streams, and compressed in an unknown way, in calls. The library refuses both too, the first
 * without a body and the second without details. Bytes go to the library, which knows gzip alone.
 */
export function unreadable(req: FastifyRequest): Problem | undefined {
  const contentType = req.headers["content-type"] ?? "";
  const codings = isJson(req) ? CODINGS : ["gzip"];
  const isKnown = ["identity", ...codings].includes(nameOf(req));
  if (/^application\/(?:json|proto)\b/i.test(contentType) && !isKnown) {
    // https://connectrpc.com/docs/protocol#unary-request (Content-Encoding)
    return unreadCoding(req, codings, { code: Code.Unimplemented });
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

/** Creates the handler of one method. */
export function createConnectJsonHandler(method: DescMethodUnary, options: ConnectJsonOptions) {
  const { invoker, readMaxBytes, contextValues, readLarge, registry } = options;
  const jsonOptions = { registry };
  return async (req: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    try {
      const timeoutMs = readTimeout(req);
      requireVersion(req);
      const plain = await readDecoded(req, readMaxBytes);
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
      reply.header("content-type", "application/json");
      await sendCompressed(reply, Buffer.from(JSON.stringify(answered)));
      return reply;
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
