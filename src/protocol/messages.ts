/**
 * The messages between a node and its worker processes, as frames
 * (`frames.ts`) over a socket that a worker is started with.
 *
 * Calls and results travel in lists: whatever piles up within one turn of the
 * event loop goes out as one message, because a message costs far more than
 * what is in it. The node treats everything that comes from a worker as
 * untrusted input.
 */
import type { ServiceManifest } from "./manifest.ts";

/** Under which descriptor a worker finds the channel to its node. */
export const CHANNEL_DESCRIPTOR = 3;

/** What is told of a file besides its bytes. */
export interface FileFacts {
  readonly contentType: string;
  readonly filename?: string;
}

/** A file with its bytes. */
export interface FileValue extends FileFacts {
  readonly data: Uint8Array;
}

/** Bytes in the blob store. */
export interface BlobReference {
  readonly blobId: string;
  /** In bytes. */
  readonly size: number;
  /** Digest of the bytes, in base64url. */
  readonly sha256: string;
}

/** A file that is too large to be held in memory. */
export interface StoredFile extends FileFacts {
  readonly blob: BlobReference;
}

/**
 * Arguments or a result. `json` is JSON text in which a file is the index
 * of its bytes in `files`: at the argument's place, or, for a result, as the
 * whole text. Which places are files follows from the manifest alone.
 */
export interface Payload {
  readonly json: string;
  readonly files: readonly (FileValue | StoredFile)[];
  /**
   * A result that is too large to be held: its JSON, or the string that it is,
   * as its type says. `json` is then empty.
   */
  readonly text?: StoredFile;
}

/** A file larger than this crosses the process boundary on disk, and is kept as a blob. */
export const INLINE_FILE_BYTES = 256 * 1024;

/** A worker sends no more results together: bounds what the node has to take at once. */
export const MAX_RESULTS_PER_MESSAGE = 64;

/** A failure says of no more arguments what is wrong with them. */
export const MAX_VIOLATIONS = 50;

/**
 * A file in the folder of its call, `callFolder`: an argument under the name
 * `argumentName` gives for its index, a result under `RESULT_NAME`.
 */
export interface FileOnDisk extends FileFacts {
  /** In bytes. */
  readonly size: number;
}

/** A payload as it crosses the process boundary. */
export interface SentPayload {
  readonly json: string;
  readonly files: readonly (FileValue | FileOnDisk)[];
  /** See `Payload`. */
  readonly text?: FileOnDisk;
}

/** How a payload stands in a message: nearly all are JSON text and no more, and are sent as that. */
export type PackedPayload = string | SentPayload;

export function packPayload(payload: SentPayload): PackedPayload {
  return payload.files.length === 0 && payload.text === undefined ? payload.json : payload;
}

export function unpackPayload(packed: PackedPayload): SentPayload {
  return typeof packed === "string" ? { json: packed, files: [] } : packed;
}

/** The folder of a call, in its worker's scratch folder; made when something has to be put there. */
export function callFolder(callId: number): string {
  return `call-${callId}`;
}

export function argumentName(index: number): string {
  return `argument-${index}`;
}

export const RESULT_NAME = "result";

/** One execution of an endpoint. */
export interface Call {
  /** Chosen by the node, unique for the life of the worker. */
  readonly id: number;
  readonly endpoint: string;
  readonly arguments: PackedPayload;
  /** The task's id, or for an api call the id of the request. */
  readonly taskId: string;
  /** From 1. */
  readonly attempt: number;
  /** When the call is aborted, in milliseconds since 1970. */
  readonly deadlineMs: number;
  /** The trace that it belongs to: `traceparent`, and after a space `tracestate` where there is one. */
  readonly trace?: string;
}

export type AbortReason = "timeout" | "cancelled" | "shutdown" | "caller_gone";

/** Why a call has no result. */
export interface CallFailure {
  /** A Connect code in its wire spelling, such as `internal` or `invalid_argument`. */
  readonly code: string;
  /** One of the catalogue of reasons: what the host could tell. */
  readonly reason:
    | "ARGUMENTS_INVALID"
    | "CALL_FAILED"
    | "OUTPUT_INVALID"
    | "RESULT_TOO_LARGE"
    | "ENDPOINT_NOT_FOUND";
  readonly message: string;
  /** What is wrong with which argument (`path` in dots, empty for the whole). */
  readonly violations?: readonly { readonly path: string; readonly message: string }[];
  /** For the log of the node, never for a caller. */
  readonly stack?: string;
}

export type CallResult =
  | { readonly id: number; readonly result: PackedPayload }
  | { readonly id: number; readonly failure: CallFailure };

export type LogLevel = "debug" | "info" | "warn" | "error";

/** A worker sends no more changes of series together. */
export const MAX_CHANGES_PER_MESSAGE = 500;

/** Sets of labels that a metric of a service may have in a worker. */
export const MAX_SERIES_PER_METRIC = 2_000;

/** What has become of one series of a metric that the service declares, since it was sent last. */
export interface MetricChange {
  readonly metric: string;
  /** Whose call counted it; absent for gauges, and for what was counted outside of calls. */
  readonly endpoint?: string;
  /** Values, in the order of the declaration. */
  readonly labels: readonly string[];
  /** What a counter went up by, what a gauge is now, or the sum of what a histogram saw. */
  readonly value: number;
  /** Of a histogram: how many of the values it saw are in each bucket alone, +Inf last. */
  readonly counts?: readonly number[];
}

/** Events of a metric that were not counted, because it has too many series. */
export interface DroppedEvents {
  readonly metric: string;
  readonly events: number;
}

/** Of longer texts JSON costs more than it saves: it looks at each character for what has to be escaped. */
const MAX_JSON_TEXT = 256;

/** Whether JSON carries a message as well, and at less cost: it is of those that come in numbers, and all of it is short text. */
export function goesAsJson(message: NodeMessage | WorkerMessage): boolean {
  switch (message.type) {
    case "calls":
      return message.calls.every((call) => isShortText(call.arguments));
    case "results":
      return message.results.every((one) => "result" in one && isShortText(one.result));
    default:
      return false;
  }
}

function isShortText(packed: PackedPayload): boolean {
  return typeof packed === "string" && packed.length <= MAX_JSON_TEXT;
}

/** From the node to a worker. */
export type NodeMessage =
  | {
      readonly type: "load";
      /** Path of the service's source file; `import.meta.url` in it is this file. */
      readonly servicePath: string;
      /** Its code, bundled to one ES module with an inline source map. */
      readonly code: string;
      /** A larger result is refused before it leaves the worker: one that is a file, and any other. */
      readonly maxFileBytes: number;
      readonly maxResultBytes: number;
      /** The worker's own folder, where the folders of its calls are. */
      readonly scratchFolder: string;
      /** The service is hosted for others, and gets nothing that reaches beyond its process. */
      readonly isolated?: boolean;
    }
  /** Endpoints whose result, where it is a string, is sent to callers as text rather than as JSON. */
  | { readonly type: "text_results"; readonly endpoints: readonly string[] }
  | { readonly type: "calls"; readonly calls: readonly Call[] }
  | { readonly type: "abort"; readonly id: number; readonly reason: AbortReason }
  | { readonly type: "ping"; readonly sequence: number }
  /** Finish the calls under way, then exit with code 0. */
  | { readonly type: "stop" };

/** From a worker to the node. */
export type WorkerMessage =
  | { readonly type: "ready"; readonly manifest: ServiceManifest }
  /** The service cannot be loaded; the worker exits by itself. */
  | { readonly type: "refused"; readonly message: string }
  | { readonly type: "results"; readonly results: readonly CallResult[] }
  | {
      readonly type: "progress";
      readonly id: number;
      /** From 0 to 1. */
      readonly fraction: number;
      readonly message: string;
    }
  | {
      readonly type: "log";
      readonly id: number;
      readonly level: LogLevel;
      readonly message: string;
      /** JSON text of an object; absent when nothing was logged beside the message. */
      readonly fieldsJson?: string;
    }
  | {
      readonly type: "metrics";
      readonly changes: readonly MetricChange[];
      readonly dropped: readonly DroppedEvents[];
    }
  | { readonly type: "pong"; readonly sequence: number };
