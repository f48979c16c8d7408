/** Reads and marks running attempts by their leases. */
import type { Task } from "../../tasks/task.ts";
import type { Attempt, TaskKey } from "../storage.ts";
import { readTask } from "./read.ts";
import { STATUS } from "./schema.ts";
import { type PostgresRow, prepared, type Session, type Statement } from "./session.ts";

const REQUEST_ABORT = prepared(
  "request_abort",
  `UPDATE live_tasks SET abort_requested = true
   WHERE deployment_id = $1 AND task_id = $2 AND lease_id IS NOT NULL`,
);

export async function requestAbort(
  session: Session,
  { deploymentId, taskId }: TaskKey,
): Promise<Task | undefined> {
  await session.query(REQUEST_ABORT, deploymentId, taskId);
  return readTask(session, { deploymentId, taskId });
}

const ATTEMPTS = `SELECT deployment_id, task_id, lease_id, attempt FROM live_tasks
  WHERE lease_id = ANY ($1) AND status = ${STATUS.running}`;

const LIST_ATTEMPTS = prepared("list_attempts", ATTEMPTS);
const LIST_ABORTS = prepared("list_aborts", `${ATTEMPTS} AND abort_requested`);

export function listAttempts(
  session: Session,
  { leaseIds }: { readonly leaseIds: readonly string[] },
): Promise<Attempt[]> {
  return list(session, LIST_ATTEMPTS, leaseIds);
}

export function listAborts(
  session: Session,
  { leaseIds }: { readonly leaseIds: readonly string[] },
): Promise<Attempt[]> {
  return list(session, LIST_ABORTS, leaseIds);
}

async function list(
  session: Session,
  statement: Statement,
  leaseIds: readonly string[],
): Promise<Attempt[]> {
  const rows = await session.query(statement, leaseIds);
  return rows.map(toAttempt);
}

export function toAttempt(row: PostgresRow): Attempt {
  return {
    deploymentId: String(row.deployment_id),
    taskId: String(row.task_id),
    leaseId: String(row.lease_id),
    attempt: Number(row.attempt),
  };
}
