/**
 * What a task is. Its states and the only transitions between them:
 *
 * ```
 *            submit
 *              |
 *           queued --cancel--> cancelled
 *            claim \-- its deadline to start passed --> failure (expired)
 *              |
 *           running --ok------> success
 *              |  \--throws, times out, loses its worker too often--> failure
 *              |  \--abort----> cancelled
 *              \--retry or lost worker--> queued
 * ```
 *
 * `success`, `failure` and `cancelled` are final: a task that has reached one
 * never changes again. No I/O happens here; the storage adapters apply these
 * rules inside their transactions.
 */
export type TaskStatus = "queued" | "running" | "success" | "failure" | "cancelled";

export type FailureReason = "error" | "timeout" | "expired" | "worker_lost";

export interface TaskFailure {
  readonly reason: FailureReason;
  /** Connect code in its wire spelling, which fetching the result answers with. */
  readonly code: string;
  readonly message: string;
  /** What is wrong with which argument, when the function's schema refused them. */
  readonly violations?: readonly { readonly field: string; readonly description: string }[];
}

export interface TaskProgress {
  /** From 0 to 1. */
  readonly fraction: number;
  readonly message: string;
}

/** A task without its arguments and result. Times are milliseconds since 1970. */
export interface Task {
  readonly deploymentId: string;
  readonly taskId: string;
  readonly endpoint: string;
  readonly status: TaskStatus;
  /** Higher starts first. */
  readonly priority: number;
  readonly createdAtMs: number;
  /** Not to be started before: as it was submitted, or the time of the retry after a failed attempt. */
  readonly runAtMs: number;
  /** Fails with `expired` when it has not been started by then. */
  readonly startByMs: number | undefined;
  readonly startedAtMs: number | undefined;
  readonly finishedAtMs: number | undefined;
  readonly expiresAtMs: number;
  /** From 1; 0 before the first attempt. */
  readonly attempt: number;
  /** Attempts that failed and were followed by a retry; those that lost their worker are not among them. */
  readonly failedAttempts: number;
  readonly progress: TaskProgress | undefined;
  readonly retryOf: string | undefined;
  readonly failure: TaskFailure | undefined;
  /** The trace that its attempts belong to, as it was submitted. */
  readonly trace: string | undefined;
  /** Sequence number of the newest entry of its event log. */
  readonly lastSequence: number;
}

/** How often a task survives the death of its worker before it fails with `worker_lost`. */
export const MAX_LOST_WORKERS = 3;

export function isFinal(status: TaskStatus): boolean {
  return status === "success" || status === "failure" || status === "cancelled";
}
