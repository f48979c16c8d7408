/** Maps rows of the table `tasks` to tasks. */
import type { SQLInputValue, SQLOutputValue } from "node:sqlite";
import { NONE_RETURNED } from "../../tasks/attempt.ts";
import type { ReturnedAttempt, Task } from "../../tasks/task.ts";
import { fromJson, tagTexts, taskOf } from "../stored.ts";

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
  "started_at_ms, finished_at_ms, expires_at_ms, attempt, failed_attempts, progress_fraction, progress_message, retry_of, failure, trace, last_sequence, lease_id, returned, " +
  "idempotency_key, key, peak_memory_bytes, tags";

export function toTask(row: SqliteRow): Task {
  const fraction = row.progress_fraction;
  const progress =
    typeof fraction === "number"
      ? { fraction, message: String(row.progress_message ?? "") }
      : undefined;
  return taskOf(row, progress, toReturned(row.returned));
}

export function toReturned(json: SQLOutputValue | undefined): readonly ReturnedAttempt[] {
  return fromJson<readonly ReturnedAttempt[]>(json) ?? NONE_RETURNED;
}

/** A source of tasks, and what it goes on with: those with tags, by their index. */
export const TAGGED = "tasks INDEXED BY tasks_tagged WHERE tags IS NOT NULL AND";

/** Whether a row has all tags of a parameter, as `tagsParameter` makes it. */
export const hasTags = (parameter: string) =>
  `NOT EXISTS (SELECT 1 FROM json_each(${parameter}) WHERE instr(coalesce(tags, ''), value) = 0)`;

export function tagsParameter(tags: readonly string[]): string {
  return JSON.stringify(tagTexts(tags));
}
