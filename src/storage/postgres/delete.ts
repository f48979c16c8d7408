/** Deletes tasks before their time, and what is known of them. */
import { isFinal } from "../../tasks/task.ts";
import type { DeleteOutcome, Storage, TaskKey } from "../storage.ts";
import { countedAs } from "./counts.ts";
import { isTaken } from "./errors.ts";
import { belongingsOf, OWNER_COLUMNS, owned } from "./prune.ts";
import { readTasks } from "./read.ts";
import { STATUS } from "./schema.ts";
import { type PostgresRow, prepared, type Session } from "./session.ts";

/**
 * Deletions in one deployment take turns, by a lock that the transaction holds, so that two of the
 * same tasks cannot each wait for the other. Locking the rows in an order first writes each of them
 * to the log once more.
 */
const deletion = (name: string, onConflict: string) =>
  prepared(
    name,
    `WITH turn AS MATERIALIZED (
     SELECT pg_advisory_xact_lock(hashtextextended('tessera deletes ' || $2::text, 0)) IS NOT NULL AS taken
   ), live AS (
     DELETE FROM live_tasks WHERE deployment_id = $2 AND task_id = ANY ($3::text[])
       AND status < ${STATUS.running} AND (SELECT taken FROM turn)
     RETURNING ${OWNER_COLUMNS.live_tasks}, status, $1::bigint + retention_ms AS expires_at_ms
   ), ended AS (
     DELETE FROM finished_tasks WHERE deployment_id = $2 AND task_id = ANY ($3::text[])
       AND (SELECT taken FROM turn)
     RETURNING ${OWNER_COLUMNS.finished_tasks}, status, expires_at_ms
   ), gone AS MATERIALIZED (
     SELECT * FROM live UNION ALL SELECT * FROM ended
   ), counted AS (${countedAs("live", "-")}
   ), ${belongingsOf("gone")}, told AS (
     DELETE FROM webhook_deliveries AS own ${owned("own", "ended")}
   ), ran AS MATERIALIZED (
     SELECT task_id FROM gone WHERE has_run
   ), logged AS (
     DELETE FROM deployment_logs AS own USING ran
     WHERE own.organization_id = (
         SELECT organization_id FROM deployments WHERE deployments.deployment_id = $2)
       AND own.deployment_id = $2 AND own.task_id = ran.task_id
   ), marked AS (
     INSERT INTO deleted_tasks (deployment_id, task_id, deleted_at_ms, expires_at_ms)
     SELECT deployment_id, task_id, $1::bigint, expires_at_ms FROM gone${onConflict}
   )
   SELECT task_id FROM gone`,
  );

/** Expects that no id was deleted before: a look for each would cost a third of the statement. */
const DELETE = deletion("delete_tasks", "");
/** For ids that were deleted, and submitted again. */
const DELETE_AGAIN = deletion("delete_tasks_again", " ON CONFLICT DO NOTHING");

async function remove(session: Session, ...values: readonly unknown[]): Promise<PostgresRow[]> {
  try {
    return await session.query(DELETE, ...values);
  } catch (err) {
    if (!isTaken(err)) {
      throw err;
    }
    return session.query(DELETE_AGAIN, ...values);
  }
}

export async function deleteTasks(
  session: Session,
  { deploymentId, taskIds, nowMs }: Parameters<Storage["deleteTasks"]>[0],
): Promise<DeleteOutcome[]> {
  const rows = await remove(session, nowMs, deploymentId, taskIds);
  const outcomes = new Map(rows.map((row) => [String(row.task_id), "deleted" as DeleteOutcome]));
  const left = taskIds.filter((taskId) => !outcomes.has(taskId));
  const keys = left.map((taskId) => ({ deploymentId, taskId }));
  const found = [...(await readTasks(session, keys)).values()];
  for (const { taskId } of found) {
    outcomes.set(taskId, "running");
  }
  // These ended while the statement ran, which has seen them in neither table. They move no more.
  const ended = found.filter(({ status }) => isFinal(status)).map(({ taskId }) => taskId);
  if (ended.length > 0) {
    const again = await deleteTasks(session, { deploymentId, taskIds: ended, nowMs });
    for (const [at, outcome] of again.entries()) {
      outcomes.set(ended[at] ?? "", outcome);
    }
  }
  return taskIds.map((taskId) => outcomes.get(taskId) ?? "not_found");
}

const FIND = prepared(
  "find_deleted",
  "SELECT deleted_at_ms FROM deleted_tasks WHERE deployment_id = $1 AND task_id = $2",
);

export async function findDeleted(
  session: Session,
  { deploymentId, taskId }: TaskKey,
): Promise<number | undefined> {
  const [row] = await session.query(FIND, deploymentId, taskId);
  return row && Number(row.deleted_at_ms);
}
