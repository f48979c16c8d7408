/** Cancels a task that is queued: one that runs or has ended stays as it is. */
import type { CancelOutcome, TaskKey } from "../storage.ts";
import type { SqliteDatabase } from "./database.ts";
import { readTask } from "./read.ts";
import { TASK_COLUMNS, toTask } from "./rows.ts";
import { STATUS } from "./schema.ts";
import { tellOfEnd } from "./webhooks.ts";

export function cancelTask(
  db: SqliteDatabase,
  { deploymentId, taskId, nowMs }: TaskKey & { readonly nowMs: number },
): CancelOutcome | undefined {
  const row = db.get(
    `UPDATE tasks SET status = ${STATUS.cancelled}, finished_at_ms = ?3,
       expires_at_ms = ?3 + retention_ms, last_sequence = last_sequence + 1
     WHERE deployment_id = ?1 AND task_id = ?2
       AND status IN (${STATUS.scheduled}, ${STATUS.ready})
     RETURNING ${TASK_COLUMNS}`,
    deploymentId,
    taskId,
    nowMs,
  );
  if (row) {
    const task = toTask(row);
    db.live.take(task);
    db.counts.add(deploymentId, task.endpoint, { queued: -1 });
    tellOfEnd(db, task);
    return { outcome: "cancelled", task };
  }
  const task = readTask(db, { deploymentId, taskId });
  return task && { outcome: "not_queued", task };
}
