/** The limits of services and their calls, the same wherever they are served. */
export interface ServiceLimits {
  /** Between the abort of a call and the kill of its worker: time to clean up. */
  readonly graceMs: number;
  /** Loading a service may read a large model. */
  readonly readyTimeoutMs: number;
  /** JSON is held in memory, parsed and checked: gRPC's usual limit of a message. */
  readonly jsonBodyBytes: number;
  /** Files go to disk as they come, so this bounds what one call may fill of it. */
  readonly fileBodyBytes: number;
  /** A result that is no file: its worker has it in memory. */
  readonly maxResultBytes: number;
  /** A result that is a file, which may lie on disk all the time. */
  readonly maxFileBytes: number;
  /** Callers that may wait for tasks at a time. Each holds a connection open. */
  readonly maxWaiting: number;
}

const MEBIBYTE = 1024 * 1024;

export const SERVICE_LIMITS: ServiceLimits = {
  graceMs: 5_000,
  readyTimeoutMs: 120_000,
  jsonBodyBytes: 4 * MEBIBYTE,
  fileBodyBytes: 1024 * MEBIBYTE,
  maxResultBytes: 64 * MEBIBYTE,
  maxFileBytes: 1024 * MEBIBYTE,
  maxWaiting: 10_000,
};
