/**
 * The messages between a node and its worker processes. They are sent as frames
 * (`frames.ts`, `codec.ts`) over a socket that the worker inherits.
 *
 * Calls and results are batched: those of one turn of the event loop are sent as
 * one message, because a message costs far more than its content. The node treats
 * every message of a worker as untrusted input.
 */
import { textBetween } from "../collections/bytes.ts";
import type { RequestHead, ResponseHead } from "./heads.ts";
import type { ServiceManifest } from "./manifest.ts";
import type { Units } from "./units.ts";

/** The file descriptor of a worker's channel to its node. */
export const CHANNEL_DESCRIPTOR = 3;

/** How a build asks what a service is: by its import alone, or started as a worker starts it. */
export type Probe = "import" | "start";

/** The name and type of a file. */
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

/** A file that is too large for memory. */
export interface StoredFile extends FileFacts {
  readonly blob: BlobReference;
}

/** What travels with arguments or a result, where there is something to say. */
export interface Heads {
  /** Of arguments: the request that they came with, if the endpoint is shown it. */
  readonly request?: RequestHead;
  /** Of a result: what the function said of its answer. */
  readonly response?: ResponseHead;
}

/**
 * Arguments or a result. `json` is JSON text in which a file is the index
 * of its bytes in `files`: at the argument's place, or, for a result, as the
 * whole text. Which places are files follows from the manifest alone.
 */
export interface Payload extends Heads {
  readonly json: string;
  readonly files: readonly (FileValue | StoredFile)[];
  /**
   * A result that is too large to be held: its JSON, or the string that it is,
   * as its type says. `json` is then empty.
   */
  readonly text?: StoredFile;
  /** Of large arguments of an api: their JSON as it came, in UTF-8. `json` is then empty. */
  readonly jsonBytes?: Uint8Array;
}

/**
 * File that crosses the process boundary in a message; a larger one crosses on disk, and is
 * kept as a blob.
 */
export const MAX_INLINE_FILE_BYTES = 256 * 1024;

/** Header of a message from a worker: bounds what the node has to parse at once. */
export const MAX_HEADER_BYTES = 64 * 1024;

/** Attachments of a message from a worker: each result has at most its content and a head. */
export const MAX_ATTACHMENTS = 128;

/** Results that a worker sends together: bounds what the node has to take at once. */
export const MAX_RESULTS_PER_MESSAGE = 64;

/** JSON text of a result that crosses in a message; a longer one crosses on disk. */
export const MAX_INLINE_RESULT_CHARACTERS = 256 * 1024;

/** The same in UTF-8. */
export const MAX_INLINE_RESULT_BYTES = 3 * MAX_INLINE_RESULT_CHARACTERS;

/** JSON text of a failure: one that is longer goes without its stack and violations. */
export const MAX_FAILURE_BYTES = 128 * 1024;

/** JSON text of a manifest, which a node parses at once. */
export const MAX_MANIFEST_BYTES = 4 * 1024 ** 2;

/** Message of a line of `ctx.log`, and the JSON text of its fields, in UTF-16 units each. */
export const MAX_LOG_TEXT_CHARACTERS = 8192;

/** Why a service was refused; a longer text is cut. */
export const MAX_REFUSAL_CHARACTERS = 16_384;

/** What a service that is not ready says; a longer text is cut. */
export const MAX_NOT_READY_CHARACTERS = 1_024;

/** Arguments that a failure describes as wrong. */
export const MAX_FAILURE_VIOLATIONS = 50;

/**
 * A file in the folder of its call, `callFolder`: an argument under the name
 * `argumentName` gives for its index, a result under `RESULT_NAME`.
 */
export interface FileOnDisk extends FileFacts {
  /** In bytes. */
  readonly size: number;
}

/** A payload as it crosses the process boundary. */
export interface SentPayload extends Heads {
  readonly json: string;
  readonly files: readonly (FileValue | FileOnDisk)[];
  /** See `Payload`. */
  readonly text?: FileOnDisk;
  /** See `Payload`. */
  readonly jsonBytes?: Uint8Array;
}

/** How a payload stands in a message: nearly all are JSON text and no more, and are sent as that. */
export type PackedPayload = string | SentPayload;

export function packPayload(payload: SentPayload): PackedPayload {
  return isBare(payload) ? payload.json : payload;
}

/** True for JSON text and no more. */
export function isBare(payload: Payload | SentPayload): boolean {
  const { files, text, jsonBytes, request, response } = payload;
  return (
    files.length === 0 &&
    text === undefined &&
    jsonBytes === undefined &&
    request === undefined &&
    response === undefined
  );
}

/** The JSON of a payload as a string. */
export function jsonOf({ json, jsonBytes }: Pick<Payload, "json" | "jsonBytes">): string {
  return jsonBytes ? textBetween(jsonBytes, 0, jsonBytes.length) : json;
}

/** The heads of a payload, to spread into another one. */
export function headsOf({
  request,
  response,
}: { readonly [head in keyof Heads]: Heads[head] | undefined }): Heads {
  return { ...(request && { request }), ...(response && { response }) };
}

export function unpackPayload(packed: PackedPayload): SentPayload {
  return typeof packed === "string" ? { json: packed, files: [] } : packed;
}

/** The name of a call's folder in its worker's scratch folder. The folder is made when needed. */
export function callFolder(callId: number): string {
  return `call-${callId}`;
}

export function argumentName(index: number): string {
  return `argument-${index}`;
}

export const RESULT_NAME = "result";

/** The name of the Unix socket for a mounted server in its worker's scratch folder, by its index. */
export function mountSocketName(index: number): string {
  return `mount-${index}`;
}

/** One execution of an endpoint. */
export interface Call {
  /** Chosen by the node; unique within a worker. */
  readonly id: number;
  readonly endpoint: string;
  readonly arguments: PackedPayload;
  /** The task's id, or for an api call the id of the request. */
  readonly taskId: string;
  /** From 1. */
  readonly attempt: number;
  /** When the call times out, in milliseconds since 1970. */
  readonly deadlineMs: number;
  /** The trace context: `traceparent`, then a space and `tracestate` if there is one. */
  readonly trace?: string;
}

export type AbortReason = "timeout" | "cancelled" | "shutdown" | "caller_gone";

/** Why a call has no result. */
export interface CallFailure {
  /** A Connect code in its wire spelling, such as `internal` or `invalid_argument`. */
  readonly code: string;
  /** The reasons of the error catalogue that a worker can give. */
  readonly reason:
    | "ARGUMENTS_INVALID"
    | "CALL_FAILED"
    | "OUTPUT_INVALID"
    | "RESULT_TOO_LARGE"
    | "BATCH_FAILED"
    | "ENDPOINT_NOT_FOUND";
  readonly message: string;
  /** The HTTP status that the function chose, from 400 to 599; absent: that of the code. */
  readonly status?: number;
  /** The invalid arguments; `path` is dotted, and empty for the whole. */
  readonly violations?: readonly { readonly path: string; readonly message: string }[];
  /** For the log of the node, never for a caller. */
  readonly stack?: string;
}

/** The end of a call. The result of one that streamed is the number of its chunks, as JSON. */
export type CallResult =
  | { readonly id: number; readonly result: PackedPayload }
  | { readonly id: number; readonly failure: CallFailure };

/** Chunks that a worker sends together: with short texts, however escaped, they fit a header. */
export const MAX_CHUNKS_PER_MESSAGE = 32;

/**
 * A piece of a streamed result on its way: at most `MAX_INLINE_RESULT_CHARACTERS` of JSON or
 * text, or `MAX_INLINE_FILE_BYTES`.
 */
export interface Chunk {
  /** The call's. */
  readonly id: number;
  /** From 1, for each call. */
  readonly sequence: number;
  /**
   * The JSON text of a value, a text, or bytes, as the manifest says. The node has a long text
   * as its bytes in UTF-8, until it knows which endpoint the call is of.
   */
  readonly data: string | Uint8Array;
  /** Of the first one only: what the function said of its answer. */
  readonly response?: ResponseHead;
}

export type LogLevel = "debug" | "info" | "warn" | "error";

/** Changes of series that a worker sends together. */
export const MAX_SERIES_CHANGES_PER_MESSAGE = 500;

/** JSON text of the changes of series that a worker sends together. */
export const MAX_CHANGES_BYTES = 4 * 1024 ** 2;

/** Limit of the series of one metric in one worker. */
export const MAX_WORKER_SERIES_PER_METRIC = 2_000;

/** The change of one series of a custom metric since it was last sent. */
export interface MetricChange {
  readonly metric: string;
  /** The endpoint whose call recorded it; undefined for gauges, and outside of calls. */
  readonly endpoint?: string;
  /** Label values, in the order of the declaration. */
  readonly labels: readonly string[];
  /** The increment of a counter, the value of a gauge, or the sum of a histogram's new values. */
  readonly value: number;
  /** Of a histogram: the number of new values in each bucket (not cumulative), +Inf last. */
  readonly counts?: readonly number[];
}

/** The events of a metric that were dropped because it has too many series. */
export interface DroppedEvents {
  readonly metric: string;
  readonly events: number;
}

/** Text in which a program of a worker exposes its metrics, in the format of Prometheus. */
export const MAX_EXPOSITION_BYTES = 1024 ** 2;

/** What has changed in a metric that a program of a worker exposes, which no service declares. */
export interface ExposedMetric {
  readonly name: string;
  readonly kind: "counter" | "gauge" | "histogram";
  readonly help: string;
  /** Of a histogram: the upper bounds in rising order, without +Inf; a summary has none. */
  readonly buckets?: readonly number[];
  /** Of a gauge: how the values of several workers are combined into one. */
  readonly aggregator?: "sum" | "min" | "max" | "average";
  readonly changes: readonly ExposedChange[];
}

/** The change of one series of such a metric. */
export interface ExposedChange {
  /** Names and values in turns, sorted by name. */
  readonly labels: readonly string[];
  /** As in `MetricChange`; absent for a gauge that is not there any more. */
  readonly value?: number;
  readonly counts?: readonly number[];
}

/** Where a host of another language finds the service, which it imports itself. */
export interface ServiceEntry {
  /** The path of its source file, or the dotted name of its module. */
  readonly module: string;
  /** Its name there, for a module with several. */
  readonly name?: string;
  /** The folder from which a dotted name is imported. Default: the working folder. */
  readonly folder?: string;
}

/** From the node to a worker. */
export type NodeMessage =
  | {
      readonly type: "load";
      /** The path of the service's source file, which is its `import.meta.url`. */
      readonly servicePath: string;
      /** Its code, bundled to one ES module with an inline source map, or where the host finds it. */
      readonly code: string | ServiceEntry;
      /** Limit of a result that is a file; the worker refuses a larger one. */
      readonly maxFileBytes: number;
      /** Limit of any other result; the worker refuses a larger one. */
      readonly maxResultBytes: number;
      /** The worker's own folder, which contains the folders of its calls. */
      readonly scratchFolder: string;
      /** True for a service of a deployment, which gets no access beyond its process. */
      readonly isolated?: boolean;
      /**
       * Only the manifest is asked for, by a build. With `import`, a host for which the import
       * tells it all constructs nothing: that may need a GPU, or read a model for minutes.
       */
      readonly probe?: Probe;
    }
  /** The endpoints whose string results are sent to callers as text instead of JSON. */
  | { readonly type: "text_results"; readonly endpoints: readonly string[] }
  | { readonly type: "calls"; readonly calls: readonly Call[] }
  /** Calls of one endpoint that its function takes together; each ends by a result of its own. */
  | { readonly type: "batch"; readonly endpoint: string; readonly calls: readonly Call[] }
  | { readonly type: "abort"; readonly id: number; readonly reason: AbortReason }
  /** This many more chunks of the call were consumed, and leave its window (`stream-window.ts`). */
  | { readonly type: "more"; readonly id: number; readonly count: number }
  /** Connect to the socket of a mounted server (`mountSocketName`), and let it serve what comes. */
  | { readonly type: "connect"; readonly mount: number }
  /** End the WebSockets of mounted servers; each of their connections ends with its answer. */
  | { readonly type: "retire" }
  | { readonly type: "ping"; readonly sequence: number }
  /** Finish the calls under way, then exit with code 0. */
  | { readonly type: "stop" };

/**
 * With this code a host exits when no call in its process can use its GPU any more: `EX_OSERR` of
 * `sysexits.h`.
 */
export const GPU_LOST_EXIT_CODE = 71;

/** The version of the host protocol that a node speaks. */
export const PROTOCOL_VERSION = 2;

/** From a worker to the node. */
export type WorkerMessage =
  /** The first message of a host that is not part of the node: the versions that it speaks. */
  | { readonly type: "hello"; readonly protocols: readonly number[]; readonly host: string }
  | { readonly type: "ready"; readonly manifest: ServiceManifest }
  /**
   * What a loaded service says of itself, such as `ready said false`: before `ready`, and when it
   * changes later. Empty: that it is ready again.
   */
  | { readonly type: "readiness"; readonly said: string }
  /** The service cannot be loaded, or a program of it has ended; the worker exits by itself. */
  | { readonly type: "refused"; readonly message: string }
  | { readonly type: "results"; readonly results: readonly CallResult[] }
  /** Pieces of results, each within the window of its call and before the end of it. */
  | { readonly type: "chunks"; readonly chunks: readonly Chunk[] }
  | {
      readonly type: "progress";
      readonly id: number;
      /** From 0 to 1. */
      readonly fraction: number;
      readonly message: string;
    }
  /** What the function says that the call used (`units.ts`). */
  | { readonly type: "usage"; readonly id: number; readonly units: Units }
  | {
      readonly type: "log";
      readonly id: number;
      readonly level: LogLevel;
      readonly message: string;
      /** JSON text of an object; undefined for a line without fields. */
      readonly fieldsJson?: string;
      /** Lines before it that the worker left out; absent for none. */
      readonly skipped?: number;
    }
  | {
      readonly type: "metrics";
      readonly changes: readonly MetricChange[];
      readonly dropped: readonly DroppedEvents[];
      /** What its programs expose. The node that runs a worker finds it out; no worker sends it. */
      readonly exposed?: readonly ExposedMetric[];
      /** How often what its programs expose could not be read. Default: never. */
      readonly unread?: number;
    }
  /** What the libraries in a host expose, in the format of Prometheus: all of it, when it has changed. */
  | { readonly type: "exposition"; readonly text: string }
  | { readonly type: "pong"; readonly sequence: number };

/** True when the whole payload is in memory, as nearly all are. */
export function isAtHand<P extends Payload | SentPayload>(
  payload: P,
): payload is P & Payload & SentPayload {
  return (
    payload.text === undefined &&
    (payload.files.length === 0 || payload.files.every((file) => "data" in file))
  );
}
