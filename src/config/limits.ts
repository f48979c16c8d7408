import { MAX_JSON_OPTION_BYTES } from "../protocol/manifest.ts";

/** The limits of services and their calls, the same for `serve` and `start`. */
export interface ServiceLimits {
  /** Time to clean up between the abort of a call and the kill of its worker. */
  readonly graceMs: number;
  /**
   * After this silence a worker on another machine is lost, unless it asks for a longer one. It has
   * ended its calls by then, after 14/15 of it; its lease, which a node renews every 5 s, ends 5 s
   * later where the node ends too.
   */
  readonly silenceMs: number;
  /**
   * For a worker to load its service, which may read a large model, where neither the deployment
   * nor the code says.
   */
  readonly readyTimeoutMs: number;
  /**
   * JSON body of an endpoint that says nothing of it. It is held in memory, and checked: gRPC's
   * usual limit for a message.
   */
  readonly jsonBodyBytes: number;
  /** The most that an endpoint may ask for instead (`max_json`). */
  readonly maxJsonBodyBytes: number;
  /** Files are streamed to disk, so this bounds the disk space that one call may fill. */
  readonly fileBodyBytes: number;
  /** A result that is no file; its worker holds it in memory. */
  readonly maxResultBytes: number;
  /** A result that is a file, which may stay on disk throughout. */
  readonly maxFileBytes: number;
  /** Callers that may wait for tasks at once. Each holds a connection open. */
  readonly maxWaiting: number;
}

const MEBIBYTE = 1024 * 1024;

export const SERVICE_LIMITS: ServiceLimits = {
  graceMs: 5_000,
  silenceMs: 15_000,
  readyTimeoutMs: 600_000,
  jsonBodyBytes: 4 * MEBIBYTE,
  maxJsonBodyBytes: MAX_JSON_OPTION_BYTES,
  fileBodyBytes: 1024 * MEBIBYTE,
  maxResultBytes: 64 * MEBIBYTE,
  maxFileBytes: 1024 * MEBIBYTE,
  maxWaiting: 10_000,
};
