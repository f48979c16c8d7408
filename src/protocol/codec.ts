/**
 * Encodes messages as frames, and reads those of a node. Short texts stand in the
 * header, where they cost least; long texts, files and what has a structure of its
 * own (manifests, failures, many counts) are attachments, so that the header stays within
 * `MAX_HEADER_BYTES`. How a node reads the messages of a worker is in `src/pool/checks/check.ts`.
 */
import { type Attachments, OutgoingAttachments, type Reference } from "./attachments.ts";
import { FORMAT, LENGTH_BYTES, PREFIX_BYTES } from "./frames.ts";
import type { RequestHead } from "./heads.ts";
import {
  type Call,
  type CallFailure,
  type CallResult,
  type Chunk,
  type Heads,
  MAX_FAILURE_BYTES,
  type NodeMessage,
  type PackedPayload,
  type WorkerMessage,
} from "./messages.ts";

/**
 * Text that stands in the header of its message. For a longer one JSON costs more than an
 * attachment, because it looks at each character for what has to be escaped.
 */
const MAX_HEADER_TEXT_CHARACTERS = 256;

/** Changes of series that stand in the header of their message, whatever their labels are. */
const MAX_HEADER_CHANGES = 4;

const PREFIX_SPACE = "\0".repeat(PREFIX_BYTES);

// Captured before any user code runs.
const { parse, stringify } = JSON;

/** Encodes a frame. `header` is a value that survives JSON unchanged. */
export function encodeFrame(header: unknown, attachments?: OutgoingAttachments): Buffer {
  if (attachments === undefined || attachments.bytes === 0) {
    const frame = Buffer.from(PREFIX_SPACE + stringify(header));
    return writePrefix(frame, frame.length - PREFIX_BYTES);
  }
  const text = stringify(header);
  const headerBytes = Buffer.byteLength(text);
  const frame = Buffer.allocUnsafe(PREFIX_BYTES + headerBytes + attachments.bytes);
  frame.write(text, PREFIX_BYTES);
  attachments.writeTo(frame, PREFIX_BYTES + headerBytes);
  return writePrefix(frame, headerBytes);
}

function writePrefix(frame: Buffer, headerBytes: number): Buffer {
  frame.writeUInt32LE(frame.length - LENGTH_BYTES, 0);
  frame[LENGTH_BYTES] = FORMAT;
  frame.writeUInt32LE(headerBytes, LENGTH_BYTES + 1);
  return frame;
}

export function encodeMessage(message: NodeMessage | WorkerMessage): Buffer {
  if (isShort(message)) {
    return encodeFrame(message);
  }
  const attachments = new OutgoingAttachments();
  return encodeFrame(headerOf(message, attachments), attachments);
}

/** A node's message, from what `FrameReader` gives of it. */
export function decodeNodeMessage(header: unknown, attachments: Attachments): NodeMessage {
  const message = header as NodeMessage;
  switch (message.type) {
    case "load":
      return { ...message, code: textOf(message.code, attachments) };
    case "batch":
    case "calls":
      for (const call of message.calls) {
        (call as { arguments: PackedPayload }).arguments = payloadOf(call.arguments, attachments);
      }
      return message;
    default:
      return message;
  }
}

/** True for messages that are short texts and numbers only, as nearly all are. */
function isShort(message: NodeMessage | WorkerMessage): boolean {
  switch (message.type) {
    case "batch":
    case "calls":
      return message.calls.every((call) => isShortText(call.arguments));
    case "results":
      return message.results.every((one) => "result" in one && isShortText(one.result));
    case "chunks":
      return message.chunks.every(
        ({ data, response }) =>
          typeof data === "string" && isShortText(data) && response === undefined,
      );
    case "metrics":
      return message.changes.length <= MAX_HEADER_CHANGES;
    case "load":
    case "ready":
    case "refused":
    case "log":
      return false;
    default:
      return true;
  }
}

function isShortText(packed: PackedPayload): boolean {
  return typeof packed === "string" && packed.length <= MAX_HEADER_TEXT_CHARACTERS;
}

function headerOf(message: NodeMessage | WorkerMessage, attachments: OutgoingAttachments): unknown {
  switch (message.type) {
    case "load":
      return typeof message.code === "string"
        ? { ...message, code: shown(message.code, attachments) }
        : message;
    case "batch":
    case "calls":
      return { ...message, calls: message.calls.map((call) => callHeader(call, attachments)) };
    case "results":
      return { ...message, results: message.results.map((one) => resultHeader(one, attachments)) };
    case "chunks":
      return { ...message, chunks: message.chunks.map((one) => chunkHeader(one, attachments)) };
    case "metrics":
      return { ...message, changes: attachments.add(stringify(message.changes)) };
    case "ready":
      return { ...message, manifest: attachments.add(stringify(message.manifest)) };
    case "refused":
      return { ...message, message: shown(message.message, attachments) };
    case "log": {
      const { fieldsJson } = message;
      const text = shown(message.message, attachments);
      return fieldsJson === undefined
        ? { ...message, message: text }
        : { ...message, message: text, fieldsJson: shown(fieldsJson, attachments) };
    }
    default:
      return message;
  }
}

function callHeader(call: Call, attachments: OutgoingAttachments): unknown {
  return { ...call, arguments: payloadHeader(call.arguments, attachments) };
}

function resultHeader(one: CallResult, attachments: OutgoingAttachments): unknown {
  return "result" in one
    ? { id: one.id, result: payloadHeader(one.result, attachments) }
    : { id: one.id, failure: attachments.add(failureText(one.failure)) };
}

function chunkHeader(
  { id, sequence, data, response }: Chunk,
  attachments: OutgoingAttachments,
): unknown {
  const shownData = typeof data === "string" ? shown(data, attachments) : attachments.add(data);
  return { id, sequence, data: shownData, ...headHeaders({ response }, attachments) };
}

/** Heads are attachments however short they are, so that the header stays within its limit. */
function headHeaders({ request, response }: SentHeads, attachments: OutgoingAttachments): object {
  return {
    ...(request && { request: attachments.add(stringify(request)) }),
    ...(response && { response: attachments.add(stringify(response)) }),
  };
}

type SentHeads = { readonly [head in keyof Heads]: Heads[head] | undefined };

function payloadHeader(packed: PackedPayload, attachments: OutgoingAttachments): unknown {
  if (typeof packed === "string") {
    return shown(packed, attachments);
  }
  const { jsonBytes, ...rest } = packed;
  return {
    ...rest,
    json: jsonBytes ? attachments.add(jsonBytes) : shown(packed.json, attachments),
    files: packed.files.map((file) =>
      "data" in file ? { ...file, data: attachments.add(file.data) } : file,
    ),
    ...headHeaders(packed, attachments),
  };
}

/** What stands in the header for a text. */
function shown(text: string, attachments: OutgoingAttachments): string | Reference {
  return text.length <= MAX_HEADER_TEXT_CHARACTERS ? text : attachments.add(text);
}

function failureText(failure: CallFailure): string {
  const text = stringify(failure);
  if (Buffer.byteLength(text) <= MAX_FAILURE_BYTES) {
    return text;
  }
  const { code, reason, message, status } = failure;
  return stringify({ code, reason, message, status });
}

function payloadOf(packed: PackedPayload, attachments: Attachments): PackedPayload {
  if (typeof packed === "string") {
    return packed;
  }
  if (!("json" in packed)) {
    return textOf(packed, attachments);
  }
  const json = textOf(packed.json, attachments);
  const files = packed.files.map((file) =>
    "data" in file ? { ...file, data: attachments.take(file.data) ?? NO_BYTES } : file,
  );
  const { request } = packed;
  return request
    ? { ...packed, json, files, request: parse(textOf(request, attachments)) as RequestHead }
    : { ...packed, json, files };
}

const NO_BYTES = new Uint8Array();

function textOf(value: unknown, attachments: Attachments): string {
  return attachments.text(value) ?? "";
}
