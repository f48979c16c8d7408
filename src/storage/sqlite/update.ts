/** Changes a task that is queued: one that runs or has ended stays as it is. */
import type { Storage } from "../storage.ts";
import { tagsText } from "../stored.ts";
import type { SqliteDatabase } from "./database.ts";
import { readTask } from "./read.ts";
import { TASK_COLUMNS, toTask } from "./rows.ts";
import { STATUS } from "./schema.ts";

export function updateTask(
  db: SqliteDatabase,
  { deploymentId, taskId, change, nowMs }: Parameters<Storage["updateTask"]>[0],
): Awaited<ReturnType<Storage["updateTask"]>> {
  const { priority, runAtMs, startByMs, retentionMs, tags } = change;
  const row = db.get(
    `UPDATE tasks SET priority = coalesce(?3, priority),
       run_at_ms = coalesce(?4, run_at_ms),
       status = CASE WHEN ?4 IS NULL THEN status WHEN ?4 > ?5 THEN ${STATUS.scheduled}
         ELSE ${STATUS.ready} END,
       start_by_ms = CASE WHEN ?6 THEN ?7 ELSE start_by_ms END,
       retention_ms = coalesce(?8, retention_ms),
       expires_at_ms = CASE WHEN coalesce(?4, ?8) IS NULL THEN expires_at_ms
         ELSE coalesce(?4, run_at_ms) + coalesce(?8, retention_ms) END,
       tags = CASE WHEN ?9 THEN ?10 ELSE tags END
     WHERE deployment_id = ?1 AND task_id = ?2
       AND status IN (${STATUS.scheduled}, ${STATUS.ready})
     RETURNING ${TASK_COLUMNS}`,
    deploymentId,
    taskId,
    priority ?? null,
    runAtMs === undefined ? null : Math.max(runAtMs, nowMs),
    nowMs,
    startByMs === undefined ? 0 : 1,
    startByMs ?? null,
    retentionMs ?? null,
    tags === undefined ? 0 : 1,
    tags?.length ? tagsText(tags) : null,
  );
  if (row) {
    db.live.take({ deploymentId, taskId });
    return { outcome: "updated", task: toTask(row) };
  }
  const task = readTask(db, { deploymentId, taskId });
  return task && { outcome: "not_queued", task };
}
