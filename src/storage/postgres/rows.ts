/** Maps rows of the task tables to tasks, and keys to parameters. */
import { NONE_RETURNED } from "../../tasks/attempt.ts";
import type {
  ReturnedAttempt,
  Task,
  TaskFailure,
  TaskProgress,
  TaskStatus,
} from "../../tasks/task.ts";
import type { TaskKey } from "../storage.ts";
import type { PostgresRow } from "./session.ts";

/** The columns that `toTask` reads, from the view `tasks`. */
export const TASK_COLUMNS =
  "deployment_id, task_id, endpoint, status, priority, created_at_ms, run_at_ms, start_by_ms, " +
  "started_at_ms, finished_at_ms, expires_at_ms, attempt, failed_attempts, progress, retry_of, failure, trace, last_sequence, lease_id, returned";

/** The same columns from `live_tasks`. */
export const LIVE_COLUMNS =
  "deployment_id, task_id, endpoint, status, priority, created_at_ms, run_at_ms, start_by_ms, " +
  "started_at_ms, expires_at_ms, attempt, failed_attempts, progress, retry_of, trace, last_sequence, lease_id, returned";

/** Qualifies columns with their table. */
export function columnsOf(table: string, columns: string): string {
  return columns.replace(/\w+/g, `${table}.$&`);
}

const STATUSES: readonly TaskStatus[] = [
  "queued",
  "queued",
  "running",
  "success",
  "failure",
  "cancelled",
];

export function toTask(row: PostgresRow): Task {
  return {
    deploymentId: String(row.deployment_id),
    taskId: String(row.task_id),
    endpoint: String(row.endpoint),
    status: statusOf(row.status),
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
    progress: fromJson<TaskProgress>(row.progress),
    retryOf: typeof row.retry_of === "string" ? row.retry_of : undefined,
    failure: fromJson<TaskFailure>(row.failure),
    trace: typeof row.trace === "string" ? row.trace : undefined,
    lastSequence: Number(row.last_sequence),
  };
}

export function statusOf(stored: unknown): TaskStatus {
  return STATUSES[Number(stored)] ?? "queued";
}

function toReturned(records: unknown): readonly ReturnedAttempt[] {
  return Array.isArray(records)
    ? records.map((record) => JSON.parse(String(record)) as ReturnedAttempt)
    : NONE_RETURNED;
}

function optionalNumber(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

function fromJson<Value>(text: unknown): Value | undefined {
  return typeof text === "string" ? (JSON.parse(text) as Value) : undefined;
}

/** The key of a task in maps of this folder. */
export function nameOf({ deploymentId, taskId }: TaskKey): string {
  return `${deploymentId}/${taskId}`;
}

/** Keys of tasks as a JSON parameter. */
export function toKeys(tasks: readonly TaskKey[]): string {
  return JSON.stringify(
    tasks.map(({ deploymentId, taskId }) => ({ deployment_id: deploymentId, task_id: taskId })),
  );
}
