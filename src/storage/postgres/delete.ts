/** Deletes tasks before their time, and what is known of them. */
import { isFinal } from "../../tasks/task.ts";
import type { DeleteOutcome, Storage, TaskKey } from "../storage.ts";
import { countedAs } from "./counts.ts";
import { BELONGINGS, owned } from "./prune.ts";
import { readTasks } from "./read.ts";
import { STATUS } from "./schema.ts";
import { prepared, type Session } from "./session.ts";

/** SQL that selects the tasks of a table that are asked for, in the order in which they are locked. */
const asked = (table: string, also: string): string =>
  `SELECT deployment_id, task_id FROM ${table}
   WHERE deployment_id = $2 AND task_id = ANY ($3::text[])${also} ORDER BY task_id FOR UPDATE`;

const GONE_COLUMNS = "deployment_id, task_id, endpoint, status, attempt, idempotency_key";

const DELETE = prepared(
  "delete_tasks",
  `WITH live AS (
     DELETE FROM live_tasks WHERE (deployment_id, task_id) IN (
       ${asked("live_tasks", ` AND status < ${STATUS.running}`)})
     RETURNING ${GONE_COLUMNS}, $1::bigint + retention_ms AS expires_at_ms
   ), ended AS (
     DELETE FROM finished_tasks WHERE (deployment_id, task_id) IN (${asked("finished_tasks", "")})
     RETURNING ${GONE_COLUMNS}, expires_at_ms
   ), gone AS MATERIALIZED (
     SELECT * FROM live UNION ALL SELECT * FROM ended
   ), counted AS (${countedAs("live", "-")}
   ), ${BELONGINGS}, told AS (
     DELETE FROM webhook_deliveries AS own ${owned("own")}
   ), ran AS MATERIALIZED (
     SELECT task_id FROM gone WHERE attempt > 0
   ), logged AS (
     DELETE FROM deployment_logs AS own USING ran
     WHERE own.organization_id = (
         SELECT organization_id FROM deployments WHERE deployments.deployment_id = $2)
       AND own.deployment_id = $2 AND own.task_id = ran.task_id
   ), marked AS (
     INSERT INTO deleted_tasks (deployment_id, task_id, deleted_at_ms, expires_at_ms)
     SELECT deployment_id, task_id, $1::bigint, expires_at_ms FROM gone ON CONFLICT DO NOTHING
   )
   SELECT task_id FROM gone`,
);

export async function deleteTasks(
  session: Session,
  { deploymentId, taskIds, nowMs }: Parameters<Storage["deleteTasks"]>[0],
): Promise<DeleteOutcome[]> {
  const rows = await session.query(DELETE, nowMs, deploymentId, taskIds);
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
