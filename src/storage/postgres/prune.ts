import type { Storage } from "../storage.ts";
import { prepared, type Session } from "./session.ts";

const PRUNE = prepared(
  "prune_finished",
  `WITH gone AS (
     DELETE FROM finished_tasks WHERE (deployment_id, task_id) IN (
       SELECT deployment_id, task_id FROM finished_tasks WHERE expires_at_ms <= $1
       ORDER BY expires_at_ms LIMIT $2 FOR UPDATE SKIP LOCKED)
     RETURNING deployment_id, task_id, endpoint, idempotency_key
   ), parts AS (
     DELETE FROM payload_parts AS own ${owned("own")}
   ), events AS (
     DELETE FROM task_events AS own ${owned("own")}
   ), keys AS (
     DELETE FROM idempotency_keys AS own USING gone
     WHERE own.deployment_id = gone.deployment_id AND own.endpoint = gone.endpoint
       AND own.key = gone.idempotency_key AND own.task_id = gone.task_id
   )
   SELECT count(*) AS pruned FROM gone`,
);

function owned(table: string): string {
  return `USING gone WHERE ${table}.deployment_id = gone.deployment_id
    AND ${table}.task_id = gone.task_id`;
}

export async function pruneFinished(
  session: Session,
  { nowMs, limit }: Parameters<Storage["pruneFinished"]>[0],
): Promise<number> {
  const [row] = await session.query(PRUNE, nowMs, limit);
  return Number(row?.pruned ?? 0);
}
