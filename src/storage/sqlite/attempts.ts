/** Reads and marks running attempts by their leases. */
import type { Task } from "../../tasks/task.ts";
import type { Attempt, TaskKey } from "../storage.ts";
import type { SqliteDatabase } from "./database.ts";
import { readTask } from "./read.ts";
import type { SqliteRow } from "./rows.ts";
import { STATUS } from "./schema.ts";

export function requestAbort(db: SqliteDatabase, key: TaskKey): Task | undefined {
  db.run(
    `UPDATE tasks SET abort_requested = 1
     WHERE deployment_id = ? AND task_id = ? AND status = ${STATUS.running}`,
    key.deploymentId,
    key.taskId,
  );
  return readTask(db, key);
}

export function listAborts(
  db: SqliteDatabase,
  { leaseIds }: { readonly leaseIds: readonly string[] },
): Attempt[] {
  return attemptsUnder(db, leaseIds, "AND abort_requested = 1");
}

export function listAttempts(
  db: SqliteDatabase,
  { leaseIds }: { readonly leaseIds: readonly string[] },
): Attempt[] {
  return attemptsUnder(db, leaseIds, "");
}

/** Lists the attempts under these leases; `also` adds a condition. */
export function attemptsUnder(
  db: SqliteDatabase,
  leaseIds: readonly string[],
  also: "" | "AND abort_requested = 1",
): Attempt[] {
  return leaseIds.flatMap((leaseId) =>
    db
      .all(
        `SELECT deployment_id, task_id, lease_id, attempt FROM tasks
         WHERE lease_id = ? AND status = ${STATUS.running} ${also}`,
        leaseId,
      )
      .map(toAttempt),
  );
}

/** Lists every running attempt. */
export function attemptsOfAll(db: SqliteDatabase): Attempt[] {
  return db
    .all(
      `SELECT deployment_id, task_id, lease_id, attempt FROM tasks INDEXED BY tasks_leased
       WHERE status = ${STATUS.running}`,
    )
    .map(toAttempt);
}

function toAttempt(row: SqliteRow): Attempt {
  return {
    deploymentId: String(row.deployment_id),
    taskId: String(row.task_id),
    leaseId: String(row.lease_id),
    attempt: Number(row.attempt),
  };
}
