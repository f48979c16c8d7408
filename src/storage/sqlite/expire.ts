import { EXPIRED } from "../../tasks/failure.ts";
import type { Task } from "../../tasks/task.ts";
import type { SqliteDatabase } from "./database.ts";
import { TASK_COLUMNS, toTask } from "./rows.ts";
import { STATUS } from "./schema.ts";
import { tellOfEnd } from "./webhooks.ts";

export function expireTasks(
  db: SqliteDatabase,
  { nowMs, limit }: { readonly nowMs: number; readonly limit: number },
): Task[] {
  const rows = db.all(
    `UPDATE tasks SET status = ${STATUS.failure}, finished_at_ms = ?1, failure = ?2,
       expires_at_ms = ?1 + retention_ms, last_sequence = last_sequence + 1
     WHERE (deployment_id, task_id) IN (
       SELECT deployment_id, task_id FROM tasks INDEXED BY tasks_start_by
       WHERE status <= ${STATUS.ready} AND start_by_ms IS NOT NULL AND start_by_ms <= ?1
       ORDER BY start_by_ms LIMIT ?3)
     RETURNING ${TASK_COLUMNS}`,
    nowMs,
    JSON.stringify(EXPIRED),
    limit,
  );
  return rows.map((row) => {
    const task = toTask(row);
    db.live.take(task);
    db.counts.add(task.deploymentId, task.endpoint, { queued: -1 });
    tellOfEnd(db, task);
    return task;
  });
}
