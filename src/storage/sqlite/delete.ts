/** Deletes tasks before their time, and what is known of them. */
import type { DeleteOutcome, Storage, TaskKey } from "../storage.ts";
import type { SqliteDatabase } from "./database.ts";
import { deleteBelongings } from "./prune.ts";
import { STATUS } from "./schema.ts";

/**
 * What is deleted is overwritten with zeros, and does not stay in free pages of the file either. That
 * costs writes, so it is so for these deletions alone.
 */
export function deleteTasks(
  db: SqliteDatabase,
  { deploymentId, taskIds, nowMs }: Parameters<Storage["deleteTasks"]>[0],
): DeleteOutcome[] {
  db.get("PRAGMA secure_delete = ON");
  try {
    const gone = remove(db, deploymentId, taskIds, nowMs);
    const there = "SELECT 1 FROM tasks WHERE deployment_id = ? AND task_id = ?";
    return taskIds.map((taskId) =>
      gone.has(taskId) ? "deleted" : db.get(there, deploymentId, taskId) ? "running" : "not_found",
    );
  } finally {
    db.get("PRAGMA secure_delete = FAST");
  }
}

/** Deletes those that do not run; answers their ids. */
function remove(
  db: SqliteDatabase,
  deploymentId: string,
  taskIds: readonly string[],
  nowMs: number,
): ReadonlySet<string> {
  const rows = db.all(
    `DELETE FROM tasks
     WHERE deployment_id = ?1 AND task_id IN (SELECT value FROM json_each(?2))
       AND status <> ${STATUS.running}
     RETURNING deployment_id, task_id, endpoint, status, attempt, idempotency_key,
       arguments IS NOT NULL AS is_inline,
       CASE WHEN status < ${STATUS.running} THEN ?3 + retention_ms ELSE expires_at_ms END
         AS expires_at_ms`,
    deploymentId,
    JSON.stringify(taskIds),
    nowMs,
  );
  const ran: string[] = [];
  for (const row of rows) {
    const taskId = String(row.task_id);
    db.live.take({ deploymentId, taskId });
    if (Number(row.status) < STATUS.running) {
      db.counts.add(deploymentId, String(row.endpoint), { queued: -1 });
    } else {
      const told = "DELETE FROM webhook_deliveries WHERE deployment_id = ? AND task_id = ?";
      db.run(told, deploymentId, taskId);
    }
    if (Number(row.attempt) > 0) {
      ran.push(taskId);
    }
    // One that waits for its first attempt has nothing else, unless its arguments were large.
    if (Number(row.attempt) > 0 || row.is_inline === 0 || row.idempotency_key !== null) {
      deleteBelongings(db, row, nowMs);
    }
  }
  if (ran.length > 0) {
    db.run(
      `DELETE FROM deployment_logs
       WHERE organization_id = (SELECT organization_id FROM deployments WHERE deployment_id = ?1)
         AND deployment_id = ?1 AND task_id IN (SELECT value FROM json_each(?2))`,
      deploymentId,
      JSON.stringify(ran),
    );
  }
  db.run(
    `INSERT INTO deleted_tasks (deployment_id, task_id, deleted_at_ms, expires_at_ms)
     SELECT ?1, value ->> 0, ?2, value ->> 1 FROM json_each(?3) WHERE true ON CONFLICT DO NOTHING`,
    deploymentId,
    nowMs,
    JSON.stringify(rows.map((row) => [row.task_id, row.expires_at_ms])),
  );
  return new Set(rows.map((row) => String(row.task_id)));
}

export function findDeleted(
  db: SqliteDatabase,
  { deploymentId, taskId }: TaskKey,
): number | undefined {
  const row = db.get(
    "SELECT deleted_at_ms FROM deleted_tasks WHERE deployment_id = ? AND task_id = ?",
    deploymentId,
    taskId,
  );
  return row && Number(row.deleted_at_ms);
}
