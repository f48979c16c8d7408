/** Response transcoding: answers as JSON, or as the raw bytes of a `google.api.HttpBody`. */
import { Readable } from "node:stream";
import { type JsonValue, type Message, toJson } from "@bufbuild/protobuf";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { HttpBody } from "../../../gen/google/api/httpbody_pb.js";
import {
  chooseFormat,
  frames,
  openStream,
  rawChunks,
  STREAM_HEARTBEAT_INTERVAL_MS,
} from "../http/answer-stream.ts";
import { sendCompressed } from "../http/compression.ts";
import { addEmptyLists } from "../http/empty-lists.ts";
import type { StreamAnswer, UnaryAnswer } from "../http/invoke.ts";
import { JSON_TYPE, reportProblem } from "../http/problem.ts";
import type { Binding } from "./binding.ts";
import { tagOf } from "./if-match.ts";
import { spellingOf } from "./spelling.ts";

/** The JSON of an answer: fields by their proto names, enums in lower case, empty lists as `[]`. */
function answerJson(binding: Binding, message: Message): JsonValue {
  const { output } = binding.method;
  const field = binding.responseField;
  const json = toJson(output, message, {
    useProtoFieldName: true,
    // A single field cannot be omitted the way a default value is omitted from an object.
    alwaysEmitImplicit: field !== undefined,
  });
  if (typeof json === "object" && json !== null && !Array.isArray(json)) {
    spellingOf(output).write(json);
    addEmptyLists(output, json, "name");
    return field === undefined ? json : (json[field.name] ?? null);
  }
  return json;
}

/** The raw body of an answer; undefined if the field that holds it is not set. */
function answerBody(binding: Binding, message: Message): HttpBody | undefined {
  const field = binding.responseField;
  if (field === undefined) {
    return message as HttpBody;
  }
  const fields = message as unknown as { readonly [localName: string]: unknown };
  if (field.oneof === undefined) {
    return fields[field.localName] as HttpBody | undefined;
  }
  const chosen = fields[field.oneof.localName] as { case?: string; value?: HttpBody };
  return chosen.case === field.localName ? chosen.value : undefined;
}

/** Sends the answer to a unary call. */
export function sendAnswer(
  reply: FastifyReply,
  binding: Binding,
  answer: UnaryAnswer,
): FastifyReply | Promise<FastifyReply> {
  copyHeaders(reply, answer.header);
  if (binding.tag !== undefined) {
    reply.header("etag", tagOf(answer.message, binding.tag));
  }
  if (!binding.rawResponse) {
    const json = JSON.stringify(answerJson(binding, answer.message));
    // The `ETag` of a version is sent back in `If-Match`, which takes no weak one.
    const isAsItIs = binding.tag !== undefined;
    return isAsItIs ? reply.type(JSON_TYPE).send(json) : compressed(reply.type(JSON_TYPE), json);
  }
  const body = answerBody(binding, answer.message);
  rawHeaders(reply, body?.contentType);
  return compressed(reply, Buffer.from(body?.data ?? []));
}

function compressed(
  reply: FastifyReply,
  content: string | Buffer,
): FastifyReply | Promise<FastifyReply> {
  return sendCompressed(reply, content)?.then(() => reply) ?? reply;
}

/** How long a stream waits for its first answer before it sends its headers. */
const STREAM_FIRST_ANSWER_MS = 1_000;

interface StreamedAnswer {
  readonly binding: Binding;
  readonly answers: StreamAnswer;
  /** See `RestOptions`. */
  readonly keepAliveMs?: number;
  readonly firstAnswerMs?: number;
}

/** Sends the answers of a stream. Errors: those of the stream before its first answer. */
export async function sendStream(
  req: FastifyRequest,
  reply: FastifyReply,
  {
    binding,
    answers,
    keepAliveMs = STREAM_HEARTBEAT_INTERVAL_MS,
    firstAnswerMs = STREAM_FIRST_ANSWER_MS,
  }: StreamedAnswer,
): Promise<FastifyReply> {
  if (binding.rawResponse) {
    const opened = await openStream(answers);
    const { value } = await opened.first;
    copyHeaders(reply, answers.header);
    rawHeaders(reply, value && answerBody(binding, value)?.contentType);
    const data = (message: Message) => answerBody(binding, message)?.data ?? EMPTY;
    return reply.send(Readable.from(rawChunks(opened, data)));
  }
  const format = chooseFormat(req.headers.accept);
  const opened = await openStream(answers, firstAnswerMs);
  copyHeaders(reply, answers.header);
  reply
    .type(format.contentType)
    // Without it, nginx would buffer the stream.
    .header("x-accel-buffering", "no");
  const text = frames(opened, {
    format,
    keepAliveMs,
    item: (message) => format.item(answerJson(binding, message)),
    flush: () => reply.raw.flushHeaders(),
    onError: (found) => reportProblem(reply, found),
  });
  return reply.send(Readable.from(text));
}

const EMPTY = new Uint8Array();

/** Headers for bytes of a foreign type, which browsers must not run as a page of this origin. */
function rawHeaders(reply: FastifyReply, contentType: string | undefined): void {
  reply
    .type(contentType || "application/octet-stream")
    .header("content-security-policy", "sandbox");
}

function copyHeaders(reply: FastifyReply, header: Headers): void {
  for (const [name, value] of header) {
    reply.header(name, value);
  }
}
