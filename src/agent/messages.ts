/** Converts messages of WorkerService to those of the pool and back, as a worker speaks them. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import type {
  Assignment,
  FileArgument,
  RequestHead as RequestHeadMessage,
  WorkRequestSchema,
  WorkResultSchema,
} from "../../gen/tessera/v1/worker_pb.js";
import { countsCalls, type ExecuteOptions, type ExecutionEnd } from "../pool/calls/execution.ts";
import type { RequestHead, ResponseHead } from "../protocol/heads.ts";
import type { EndpointManifest } from "../protocol/manifest.ts";
import type {
  AbortReason,
  CallFailure,
  FileValue,
  Payload,
  StoredFile,
} from "../protocol/messages.ts";

export type Request = MessageInitShape<typeof WorkRequestSchema>;
export type Result = MessageInitShape<typeof WorkResultSchema>;

/**
 * How much longer than its time a call may run here. Its node ends it in time; this is for a call
 * whose node has forgotten it.
 */
const LATE_TIMEOUT_MS = 2_000;

/** A call of an endpoint; its large files are read from the node when they are needed. */
export function executeOptions(
  { id, taskId, attempt, json, files, timeLeft, trace, request }: Assignment,
  manifest: EndpointManifest,
): Omit<ExecuteOptions, "batch"> {
  const { name: endpoint, kind, timeoutMs, abortGraceMs, stream } = manifest;
  return {
    ...{ endpoint, kind, abortGraceMs, stream, taskId, attempt },
    isCounted: countsCalls(manifest),
    arguments: {
      ...{ json, files: files.map((file, index) => fileOf(file, fileKey(id, index))) },
      ...(request && { request: requestHead(request) }),
    },
    timeoutMs: (timeLeft ? durationMs(timeLeft) : timeoutMs) + LATE_TIMEOUT_MS,
    ...(trace !== "" && { trace }),
  };
}

function requestHead({ method, url, headers, client }: RequestHeadMessage): RequestHead {
  return { method, url, headers: headers.map(({ name, value }) => [name, value]), client };
}

/** What a function says of its answer, as it is sent. */
export function headMessage({ status = 0, headers }: ResponseHead) {
  return { status, headers: headers.map(([name, value]) => ({ name, value })) };
}

/** Names a file of the arguments of a call. */
function fileKey(callId: bigint, index: number): string {
  return `${callId}/${index}`;
}

/** The call and the index that `fileKey` has put together; undefined for the key of a result. */
export function readFileKey(key: string): { id: bigint; index: number } | undefined {
  const [, id, index] = /^(\d+)\/(\d+)$/.exec(key) ?? [];
  return id === undefined ? undefined : { id: BigInt(id), index: Number(index) };
}

function fileOf(file: FileArgument, blobId: string): FileValue | StoredFile {
  const { contentType, filename, content } = file;
  const facts = { contentType, ...(filename !== "" && { filename }) };
  return content.case === "size"
    ? { ...facts, blob: { blobId, size: Number(content.value), sha256: "" } }
    : { ...facts, data: content.value ?? new Uint8Array() };
}

const ABORT_REASONS: readonly string[] = [
  "timeout",
  "cancelled",
  "shutdown",
  "caller_gone",
] satisfies AbortReason[];

export function abortReason(text: string): AbortReason {
  return ABORT_REASONS.includes(text) ? (text as AbortReason) : "cancelled";
}

/** The file of a result that has to be stored before the result can be told. */
export function largeFile({ text, files: [file] }: Payload): StoredFile | undefined {
  return text ?? (file && "blob" in file ? file : undefined);
}

/** The end of a call. `blobId` is what `largeFile` is stored as. */
export function resultOf(id: bigint, end: ExecutionEnd, blobId = ""): Result {
  switch (end.kind) {
    case "result":
      return {
        ...{ id, end: payloadOf(end.result, blobId) },
        ...(end.result.response && { response: headMessage(end.result.response) }),
      };
    case "failure":
      return { id, end: { case: "failure", value: failureOf(end.failure) } };
    case "aborted":
      return { id, end: { case: "aborted", value: { reason: end.reason } } };
    case "lost":
      return {
        ...{ id, end: { case: "lost", value: end.message } },
        ...{ besideOthers: !end.alone, outOfMemory: end.outOfMemory },
      };
    case "cut_off":
    case "displaced":
      return { id, end: { case: "displaced", value: end.message } };
    case "unavailable":
      return { id, end: { case: "displaced", value: end.problem.rawMessage } };
  }
}

function payloadOf({ json, files: [file], text }: Payload, blobId: string): Result["end"] {
  if (text) {
    const { contentType, filename = "" } = text;
    const content = { case: "blobId", value: blobId } as const;
    return { case: "text", value: { contentType, filename, content } };
  }
  if (file === undefined) {
    return { case: "json", value: json };
  }
  const { contentType, filename = "" } = file;
  const content =
    "data" in file
      ? ({ case: "data", value: file.data } as const)
      : ({ case: "blobId", value: blobId } as const);
  return { case: "file", value: { contentType, filename, content } };
}

function failureOf(failure: CallFailure) {
  const { code, reason, message, violations = [], stack = "", status = 0 } = failure;
  return { code, reason, message, violations: [...violations], stack, status };
}
