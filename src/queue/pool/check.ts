/**
 * What a worker sent, if it is a message of the protocol. User code runs in
 * the same process as the host, so everything here may be forged; what passes
 * has the types that it claims, and no more is believed of it.
 */
import type { CallFailure, CallResult, SentPayload, WorkerMessage } from "../../sdk/protocol.ts";

type Fields = { readonly [name: string]: unknown };

const LEVELS = new Set(["debug", "info", "warn", "error"]);
const REASONS = new Set([
  "ARGUMENTS_INVALID",
  "CALL_FAILED",
  "OUTPUT_INVALID",
  "RESULT_TOO_LARGE",
  "ENDPOINT_NOT_FOUND",
]);

/** The message; undefined for anything that the protocol does not have. */
export function readWorkerMessage(value: unknown): WorkerMessage | undefined {
  return isFields(value) && isMessage(value) ? (value as unknown as WorkerMessage) : undefined;
}

function isMessage(message: Fields): boolean {
  switch (message.type) {
    case "ready":
      return isManifest(message.manifest);
    case "refused":
      return typeof message.message === "string";
    case "results":
      return Array.isArray(message.results) && message.results.every(isResult);
    case "progress":
      return (
        isCallId(message.id) &&
        typeof message.fraction === "number" &&
        message.fraction >= 0 &&
        message.fraction <= 1 &&
        typeof message.message === "string"
      );
    case "log":
      return (
        isCallId(message.id) &&
        LEVELS.has(message.level as string) &&
        typeof message.message === "string" &&
        (message.fieldsJson === undefined || isJson(message.fieldsJson))
      );
    case "pong":
      return typeof message.sequence === "number";
    default:
      return false;
  }
}

function isManifest(manifest: unknown): boolean {
  return (
    isFields(manifest) &&
    typeof manifest.name === "string" &&
    Array.isArray(manifest.endpoints) &&
    manifest.endpoints.every(isEndpoint)
  );
}

function isEndpoint(endpoint: unknown): boolean {
  return (
    isFields(endpoint) &&
    typeof endpoint.name === "string" &&
    (endpoint.kind === "api" || endpoint.kind === "task") &&
    [endpoint.input, endpoint.files, endpoint.output, endpoint.retries].every(isFields) &&
    [
      endpoint.timeoutMs,
      endpoint.concurrency,
      endpoint.retentionMs,
      endpoint.queueLimit,
      endpoint.priority,
    ].every((number) => Number.isSafeInteger(number))
  );
}

function isResult(result: unknown): result is CallResult {
  if (!isFields(result) || !isCallId(result.id)) {
    return false;
  }
  return result.result === undefined ? isFailure(result.failure) : isPayload(result.result);
}

function isPayload(payload: unknown): payload is SentPayload {
  return (
    isFields(payload) &&
    typeof payload.json === "string" &&
    Array.isArray(payload.files) &&
    payload.files.every(
      (file) => isFile(file) && (file.data instanceof Uint8Array || isSize(file.size)),
    ) &&
    (payload.text === undefined || (isFile(payload.text) && isSize(payload.text.size)))
  );
}

function isFile(file: unknown): file is Fields {
  return (
    isFields(file) &&
    typeof file.contentType === "string" &&
    (file.filename === undefined || typeof file.filename === "string")
  );
}

/** Of a file on disk. Whether it has that size is another matter. */
function isSize(size: unknown): boolean {
  return Number.isSafeInteger(size);
}

function isFailure(failure: unknown): failure is CallFailure {
  return (
    isFields(failure) &&
    typeof failure.code === "string" &&
    REASONS.has(failure.reason as string) &&
    typeof failure.message === "string" &&
    (failure.stack === undefined || typeof failure.stack === "string") &&
    (failure.violations === undefined ||
      (Array.isArray(failure.violations) &&
        failure.violations.every(
          (violation) =>
            isFields(violation) &&
            typeof violation.path === "string" &&
            typeof violation.message === "string",
        )))
  );
}

function isCallId(id: unknown): boolean {
  return Number.isSafeInteger(id);
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isJson(text: unknown): boolean {
  try {
    return typeof text === "string" && isFields(JSON.parse(text));
  } catch {
    return false;
  }
}
