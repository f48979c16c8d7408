/** Maps rows of the table `tasks` to tasks. */
import type { SQLInputValue, SQLOutputValue } from "node:sqlite";
import { NONE_RETURNED } from "../../tasks/attempt.ts";
import type { ReturnedAttempt, Task, TaskFailure, TaskStatus } from "../../tasks/task.ts";

export type SqliteRow = Record<string, SQLOutputValue>;

/** Runs statements inside the open transaction. */
export interface Statements {
  /** Returns the number of changed rows. */
  run(sql: string, ...values: SQLInputValue[]): number;
  all(sql: string, ...values: SQLInputValue[]): SqliteRow[];
}

/** The columns that `toTask` reads. */
export const TASK_COLUMNS =
  "deployment_id, task_id, endpoint, status, priority, created_at_ms, run_at_ms, start_by_ms, " +
  "started_at_ms, finished_at_ms, expires_at_ms, attempt, failed_attempts, progress_fraction, progress_message, retry_of, failure, trace, last_sequence, lease_id, returned";

const STATUSES: readonly TaskStatus[] = [
  "queued",
  "queued",
  "running",
  "success",
  "failure",
  "cancelled",
];

export function toTask(row: SqliteRow): Task {
  const fraction = row.progress_fraction;
  return {
    deploymentId: String(row.deployment_id),
    taskId: String(row.task_id),
    endpoint: String(row.endpoint),
    status: STATUSES[Number(row.status)] ?? "queued",
    priority: Number(row.priority),
    createdAtMs: Number(row.created_at_ms),
    runAtMs: Number(row.run_at_ms),
    startByMs: optionalNumber(row.start_by_ms),
    startedAtMs: optionalNumber(row.started_at_ms),
    finishedAtMs: optionalNumber(row.finished_at_ms),
    expiresAtMs: Number(row.expires_at_ms),
    attempt: Number(row.attempt),
    worker: typeof row.lease_id === "string" ? row.lease_id : undefined,
    returned: toReturned(row.returned),
    failedAttempts: Number(row.failed_attempts),
    progress:
      typeof fraction === "number"
        ? { fraction, message: String(row.progress_message ?? "") }
        : undefined,
    retryOf: typeof row.retry_of === "string" ? row.retry_of : undefined,
    failure: typeof row.failure === "string" ? (JSON.parse(row.failure) as TaskFailure) : undefined,
    trace: typeof row.trace === "string" ? row.trace : undefined,
    lastSequence: Number(row.last_sequence),
  };
}

export function toReturned(json: SQLOutputValue | undefined): readonly ReturnedAttempt[] {
  return typeof json === "string" ? (JSON.parse(json) as ReturnedAttempt[]) : NONE_RETURNED;
}

function optionalNumber(value: SQLOutputValue | undefined): number | undefined {
  return typeof value === "number" ? value : undefined;
}
