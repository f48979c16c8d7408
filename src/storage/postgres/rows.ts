/** Maps rows of the task tables to tasks, and keys to parameters. */
import { NONE_RETURNED } from "../../tasks/attempt.ts";
import type { ReturnedAttempt, Task, TaskProgress } from "../../tasks/task.ts";
import { toStoredText } from "../sql/operation.ts";
import type { TaskKey } from "../storage.ts";
import { fromJson, taskOf } from "../stored.ts";
import type { PostgresRow } from "./session.ts";

/** The columns that `toTask` reads, from the view `tasks`. */
export const TASK_COLUMNS =
  "deployment_id, task_id, endpoint, status, priority, created_at_ms, run_at_ms, start_by_ms, " +
  "started_at_ms, finished_at_ms, expires_at_ms, attempt, failed_attempts, progress, retry_of, failure, trace, last_sequence, lease_id, returned, " +
  "idempotency_key, key, peak_memory_bytes, tags";

/** The same columns from `live_tasks`. */
export const LIVE_COLUMNS =
  "deployment_id, task_id, endpoint, status, priority, created_at_ms, run_at_ms, start_by_ms, " +
  "started_at_ms, expires_at_ms, attempt, failed_attempts, progress, retry_of, trace, last_sequence, lease_id, returned, " +
  "idempotency_key, key, tags";

/** Qualifies columns with their table. */
export function columnsOf(table: string, columns: string): string {
  return columns.replace(/\w+/g, `${table}.$&`);
}

/** A source of tasks, and what it goes on with: those with tags, by their indexes. */
export const TAGGED = "tasks WHERE tags IS NOT NULL AND";

/** Whether a row has all tags of a parameter, as `tagTexts` makes them. */
export const hasTags = (parameter: string) =>
  `NOT EXISTS (SELECT FROM unnest(${parameter}::text[]) AS asked(tag) WHERE strpos(coalesce(tags, ''), tag) = 0)`;

export function toTask(row: PostgresRow): Task {
  return taskOf(row, fromJson<TaskProgress>(row.progress), toReturned(row.returned));
}

function toReturned(records: unknown): readonly ReturnedAttempt[] {
  return Array.isArray(records)
    ? records.map((record) => JSON.parse(String(record)) as ReturnedAttempt)
    : NONE_RETURNED;
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

/**
 * One column of many rows, as the text of an array parameter; the empty array where no row has a
 * value, which `unnest` fills up with nulls beside longer ones.
 */
export function column<Row>(
  rows: readonly Row[],
  read: (row: Row) => string | number | null | undefined,
): string {
  let text = "";
  let isEmpty = true;
  for (const row of rows) {
    const value = read(row) ?? null;
    isEmpty &&= value === null;
    text += `${text === "" ? "" : ","}${typeof value === "string" ? quoted(value) : (value ?? "NULL")}`;
  }
  return isEmpty ? "{}" : `{${text}}`;
}

/** Keys as two columns. */
export function keyColumns(keys: readonly TaskKey[]): string[] {
  return [column(keys, ({ deploymentId }) => deploymentId), column(keys, ({ taskId }) => taskId)];
}

function quoted(value: string): string {
  return /["\\]/.test(value) ? `"${value.replaceAll(/["\\]/g, "\\$&")}"` : `"${value}"`;
}

/** Values of a statement that looks for what callers ask for: no parameter may have U+0000. */
export function sought(values: readonly unknown[]): unknown[] {
  return values.map((value) => {
    if (Array.isArray(value)) {
      return sought(value);
    }
    return typeof value === "string" ? toStoredText(value) : value;
  });
}
