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

/** A file as it crosses the process boundary. */
export interface FileValue {
  readonly contentType: string;
  readonly filename?: string;
  readonly data: Uint8Array;
}

/**
 * Arguments or a result. `json` is JSON text in which a file is the index
 * of its bytes in `files`: at the argument's place, or, for a result, as the
 * whole text. Which places are files follows from the manifest alone.
 */
export interface Payload {
  readonly json: string;
  readonly files: readonly FileValue[];
}

/** The size of a payload: its JSON text, counted in characters, and its files. */
export function payloadBytes({ json, files }: Payload): number {
  return files.reduce((sum, { data }) => sum + data.byteLength, json.length);
}

/** One execution of an endpoint. */
export interface Call {
  /** Chosen by the node, unique for the life of the worker. */
  readonly id: number;
  readonly endpoint: string;
  readonly arguments: Payload;
  /** The task's id, or for an api call the id of the request. */
  readonly taskId: string;
  /** From 1. */
  readonly attempt: number;
  /** When the call is aborted, in milliseconds since 1970. */
  readonly deadlineMs: number;
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
  | { readonly id: number; readonly result: Payload }
  | { readonly id: number; readonly failure: CallFailure };

export type LogLevel = "debug" | "info" | "warn" | "error";

/** From the node to a worker. */
export type NodeMessage =
  | {
      readonly type: "load";
      /** Path of the service's source file; `import.meta.url` in it is this file. */
      readonly servicePath: string;
      /** Its code, bundled to one ES module with an inline source map. */
      readonly code: string;
      /** A larger result is refused before it leaves the worker. */
      readonly maxResultBytes: number;
    }
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
  | { readonly type: "pong"; readonly sequence: number };
