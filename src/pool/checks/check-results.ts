/**
 * Validates the results and failures that a worker sends at the end of calls. The JSON
 * text of a result is not parsed: it is stored and forwarded as it came.
 */
import type { Attachments } from "../../protocol/attachments.ts";
import {
  type CallFailure,
  type CallResult,
  type FileFacts,
  type FileOnDisk,
  type FileValue,
  MAX_FAILURE_BYTES,
  MAX_FAILURE_VIOLATIONS,
  MAX_INLINE_FILE_BYTES,
  MAX_INLINE_RESULT_BYTES,
  MAX_RESULTS_PER_MESSAGE,
  type SentPayload,
} from "../../protocol/messages.ts";
import { readHead } from "./check-head.ts";
import { isFields, listOf, parseJson } from "./untrusted.ts";

const REASONS: ReadonlySet<unknown> = new Set<CallFailure["reason"]>([
  "ARGUMENTS_INVALID",
  "CALL_FAILED",
  "OUTPUT_INVALID",
  "RESULT_TOO_LARGE",
  "ENDPOINT_NOT_FOUND",
  "BATCH_FAILED",
]);

/** Files of one result: it is a file, or has none. */
const MAX_RESULT_FILES = 1;
/** Values in a failure: with all violations there are fewer. */
const MAX_FAILURE_VALUES = 500;

export function readResults(results: unknown, attachments: Attachments): CallResult[] | undefined {
  return listOf(results, MAX_RESULTS_PER_MESSAGE, (one) => readResult(one, attachments));
}

function readResult(value: unknown, attachments: Attachments): CallResult | undefined {
  if (!isFields(value)) {
    return undefined;
  }
  const id = integerOf(value.id);
  if (id === undefined) {
    return undefined;
  }
  if (value.result === undefined) {
    const failure = readFailure(value.failure, attachments);
    return failure && { id, failure };
  }
  const result =
    attachments.text(value.result, MAX_INLINE_RESULT_BYTES) ??
    readPayload(value.result, attachments);
  return result === undefined ? undefined : { id, result };
}

function readPayload(payload: unknown, attachments: Attachments): SentPayload | undefined {
  if (!isFields(payload)) {
    return undefined;
  }
  const json = attachments.text(payload.json, MAX_INLINE_RESULT_BYTES);
  const files = listOf(
    payload.files,
    MAX_RESULT_FILES,
    (file) => readInline(file, attachments) ?? readOnDisk(file),
  );
  const text = readOnDisk(payload.text);
  if (
    json === undefined ||
    files === undefined ||
    (payload.text !== undefined && text === undefined)
  ) {
    return undefined;
  }
  if (payload.response === undefined) {
    return { json, files, ...(text && { text }) };
  }
  const response = readHead(payload.response, attachments);
  return response && { json, files, ...(text && { text }), response };
}

function readInline(file: unknown, attachments: Attachments): FileValue | undefined {
  const facts = readFacts(file);
  const data = isFields(file) ? attachments.take(file.data, MAX_INLINE_FILE_BYTES) : undefined;
  // A copy, because the bytes that came are a view that would keep the whole message alive.
  return facts && data && { ...facts, data: new Uint8Array(data) };
}

/** The claimed size is not checked here. */
function readOnDisk(file: unknown): FileOnDisk | undefined {
  const facts = readFacts(file);
  const size = isFields(file) ? integerOf(file.size) : undefined;
  return facts && size !== undefined ? { ...facts, size } : undefined;
}

function readFacts(file: unknown): FileFacts | undefined {
  if (!isFields(file) || typeof file.contentType !== "string") {
    return undefined;
  }
  const { contentType, filename } = file;
  if (filename === undefined) {
    return { contentType };
  }
  return typeof filename === "string" ? { contentType, filename } : undefined;
}

/** A failure stands in the header, or as JSON text in an attachment. */
function readFailure(value: unknown, attachments: Attachments): CallFailure | undefined {
  const text = attachments.take(value, MAX_FAILURE_BYTES);
  const failure = text ? parseJson(text, MAX_FAILURE_VALUES) : value;
  if (!isFields(failure)) {
    return undefined;
  }
  const { code, reason, message, status, stack } = failure;
  const violations = listOf(failure.violations, MAX_FAILURE_VIOLATIONS, readViolation);
  if (
    typeof code !== "string" ||
    !REASONS.has(reason) ||
    typeof message !== "string" ||
    (status !== undefined && !isErrorStatus(status)) ||
    (stack !== undefined && typeof stack !== "string") ||
    (failure.violations !== undefined && violations === undefined)
  ) {
    return undefined;
  }
  return {
    code,
    reason: reason as CallFailure["reason"],
    message,
    ...(status !== undefined && { status }),
    ...(violations && { violations }),
    ...(stack !== undefined && { stack }),
  };
}

function readViolation(violation: unknown): { path: string; message: string } | undefined {
  if (!isFields(violation)) {
    return undefined;
  }
  const { path, message } = violation;
  return typeof path === "string" && typeof message === "string" ? { path, message } : undefined;
}

function isErrorStatus(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 400 && (value as number) <= 599;
}

function integerOf(value: unknown): number | undefined {
  return Number.isSafeInteger(value) ? (value as number) : undefined;
}
