/** Converts messages of WorkerService to those of the pool and back. What comes is hostile. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  FileResult,
  HeldCall as HeldCallMessage,
  ResponseHead as ResponseHeadMessage,
  Results,
  WorkChunk,
  WorkFailure,
  WorkResponseSchema,
  WorkResult,
} from "../../../gen/tessera/v1/worker_pb.js";
import type { HeldCall, RemoteMessage, RemoteResult } from "../../pool/remote/messages.ts";
import { faultOfHead, type ResponseHead } from "../../protocol/heads.ts";
import {
  type Call,
  type CallFailure,
  type Chunk,
  type FileOnDisk,
  type FileValue,
  jsonOf,
  MAX_INLINE_RESULT_CHARACTERS,
  type SentPayload,
  unpackPayload,
} from "../../protocol/messages.ts";
import { durationFromMs } from "../../time/messages.ts";

type Response = MessageInitShape<typeof WorkResponseSchema>;

const REASONS: ReadonlySet<string> = new Set<CallFailure["reason"]>([
  "ARGUMENTS_INVALID",
  "CALL_FAILED",
  "OUTPUT_INVALID",
  "RESULT_TOO_LARGE",
  "BATCH_FAILED",
  "ENDPOINT_NOT_FOUND",
]);

export function toResponse(message: RemoteMessage): Response {
  switch (message.type) {
    case "calls": {
      const calls = message.calls.map(toAssignment);
      return { message: { case: "assignments", value: { calls, together: message.together } } };
    }
    case "abort": {
      const { id, reason } = message;
      return { message: { case: "abort", value: { id: BigInt(id), reason } } };
    }
    case "more": {
      const { id, count } = message;
      return { message: { case: "more", value: { id: BigInt(id), count } } };
    }
    case "ack": {
      const [ids, stale] = [message.ids.map(BigInt), message.stale.map(BigInt)];
      return { message: { case: "resultsAck", value: { ids, stale } } };
    }
    case "heartbeat":
      return {
        message: { case: "heartbeatAck", value: { sequence: BigInt(message.sequence) } },
      };
    case "drain": {
      const { reason } = message;
      return { message: { case: "drain", value: { reason, registerAgain: true } } };
    }
    case "connect": {
      const { id, mount } = message;
      return { message: { case: "connect", value: { id: BigInt(id), mount } } };
    }
    case "disconnect":
      return { message: { case: "disconnect", value: { id: BigInt(message.id) } } };
    case "retire":
      return { message: { case: "retire", value: {} } };
  }
}

function toAssignment(call: Call) {
  const { id, endpoint, taskId, attempt, deadlineMs, trace = "" } = call;
  const payload = unpackPayload(call.arguments);
  const { files, request } = payload;
  const json = jsonOf(payload);
  const timeLeft = durationFromMs(Math.max(0, deadlineMs - Date.now()));
  return {
    ...{ id: BigInt(id), endpoint, taskId, attempt, json, timeLeft, trace },
    files: files.map(toFile),
    ...(request && {
      request: { ...request, headers: request.headers.map(([name, value]) => ({ name, value })) },
    }),
  };
}

function toFile({ contentType, filename = "", ...file }: FileValue | FileOnDisk) {
  return {
    contentType,
    filename,
    content:
      "data" in file
        ? // A copy: the message may wait until the call has ended, which gives the bytes back.
          ({ case: "data", value: new Uint8Array(file.data) } as const)
        : ({ case: "size", value: BigInt(file.size) } as const),
  };
}

export function heldCalls(held: readonly HeldCallMessage[]): HeldCall[] {
  return held.map(({ id, taskId, attempt, endpoint }) => ({
    ...{ id: Number(id), taskId, attempt, endpoint },
  }));
}

/** The ends of calls; undefined for a message that no honest worker sends. */
export function remoteResults({ results }: Results): RemoteResult[] | undefined {
  const read = results.map(remoteResult);
  return read.every((each) => each !== undefined) ? read : undefined;
}

/** The highest number that the node counts with; it sends ids back. */
const MAX_ID = BigInt(Number.MAX_SAFE_INTEGER);

function remoteResult(result: WorkResult): RemoteResult | undefined {
  if (result.id > MAX_ID) {
    return undefined;
  }
  const read = endOf(result);
  if (read === undefined) {
    return undefined;
  }
  const measured = {
    ...(Object.keys(result.units).length > 0 && { units: result.units }),
    ...(result.peakMemoryBytes !== undefined && {
      peakMemoryBytes: Number(result.peakMemoryBytes),
    }),
  };
  if (result.response === undefined) {
    return { ...read, ...measured };
  }
  const response = headOf(result.response);
  return response && "result" in read
    ? { id: read.id, result: { ...unpackPayload(read.result), response }, ...measured }
    : undefined;
}

/** What a function says of its answer; undefined for anything that no honest worker sends. */
function headOf({ status, headers: fields }: ResponseHeadMessage): ResponseHead | undefined {
  const headers = fields.map(({ name, value }) => [name, value] as const);
  const head = status === 0 ? { headers } : { status, headers };
  return faultOfHead(head) === undefined ? head : undefined;
}

function endOf({
  id: number,
  end,
  besideOthers,
  outOfMemory,
}: WorkResult): RemoteResult | undefined {
  const id = Number(number);
  switch (end.case) {
    case "json":
      return end.value.length <= MAX_INLINE_RESULT_CHARACTERS
        ? { id, result: end.value }
        : undefined;
    case "file": {
      const file = fileOf(end.value);
      return file && { id, result: { json: "0", files: [file] } };
    }
    case "text": {
      const text = fileOf(end.value);
      return text && "size" in text ? { id, result: textResult(text) } : undefined;
    }
    case "failure": {
      const failure = failureOf(end.value);
      return failure && { id, failure };
    }
    case "aborted":
      return { id, aborted: `it was aborted at the worker (${end.value.reason})` };
    case "lost":
      return {
        id,
        lost: end.value.slice(0, MAX_REASON_CHARACTERS),
        besideOthers,
        outOfMemory,
      };
    case "displaced":
      return { id, displaced: end.value.slice(0, MAX_REASON_CHARACTERS) };
    default:
      return undefined;
  }
}

/** Why a call was lost or did not run. */
const MAX_REASON_CHARACTERS = 4_000;

function textResult(text: FileOnDisk): SentPayload {
  return { json: "", files: [], text };
}

/** A large file is known by its call, so its size is not told again. */
function fileOf({
  contentType,
  filename,
  content,
}: FileResult): FileValue | FileOnDisk | undefined {
  const facts = { contentType, ...(filename !== "" && { filename }) };
  switch (content.case) {
    case "data":
      return { ...facts, data: content.value };
    case "blobId":
      return { ...facts, size: 0 };
    default:
      return undefined;
  }
}

function failureOf(failure: WorkFailure): CallFailure | undefined {
  const { code, reason, message, violations, stack, status } = failure;
  if (!REASONS.has(reason) || (status !== 0 && status < 400)) {
    return undefined;
  }
  return {
    ...{ code, reason: reason as CallFailure["reason"], message },
    ...(violations.length > 0 && {
      violations: violations.map(({ path, message: said }) => ({ path, message: said })),
    }),
    ...(stack !== "" && { stack }),
    ...(status !== 0 && { status }),
  };
}

/** A piece of a streamed result; undefined for one without content. */
export function remoteChunk({ id, sequence, data, response: said }: WorkChunk): Chunk | undefined {
  if (data.case === undefined) {
    return undefined;
  }
  const chunk = { id: Number(id), sequence: Number(sequence), data: data.value };
  if (said === undefined) {
    return chunk;
  }
  const response = headOf(said);
  return response && sequence === 1n ? { ...chunk, response } : undefined;
}
