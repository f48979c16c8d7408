/** Changes a task that is queued: one that runs or has ended stays as it is. */
import type { Storage } from "../storage.ts";
import { tagsText } from "../stored.ts";
import { readTask } from "./read.ts";
import { LIVE_COLUMNS, toTask } from "./rows.ts";
import { STATUS } from "./schema.ts";
import { prepared, type Session } from "./session.ts";

const UPDATE = prepared(
  "update_task",
  `UPDATE live_tasks SET priority = coalesce($3::integer, priority),
     run_at_ms = coalesce($4::bigint, run_at_ms),
     status = CASE WHEN $4 IS NULL THEN status WHEN $4 > $5::bigint THEN ${STATUS.scheduled}
       ELSE ${STATUS.ready} END,
     start_by_ms = CASE WHEN $6::boolean THEN $7::bigint ELSE start_by_ms END,
     retention_ms = coalesce($8::bigint, retention_ms),
     expires_at_ms = CASE WHEN coalesce($4, $8) IS NULL THEN expires_at_ms
       ELSE coalesce($4, run_at_ms) + coalesce($8, retention_ms) END,
     tags = CASE WHEN $9::boolean THEN $10::text ELSE tags END
   WHERE deployment_id = $1 AND task_id = $2 AND status < ${STATUS.running}
   RETURNING ${LIVE_COLUMNS}`,
);

export async function updateTask(
  session: Session,
  { deploymentId, taskId, change, nowMs }: Parameters<Storage["updateTask"]>[0],
): ReturnType<Storage["updateTask"]> {
  const { priority, runAtMs, startByMs, retentionMs, tags } = change;
  const [row] = await session.query(
    UPDATE,
    deploymentId,
    taskId,
    priority ?? null,
    runAtMs === undefined ? null : Math.max(runAtMs, nowMs),
    nowMs,
    startByMs !== undefined,
    startByMs ?? null,
    retentionMs ?? null,
    tags !== undefined,
    tags?.length ? tagsText(tags) : null,
  );
  const task = row ? toTask(row) : await readTask(session, { deploymentId, taskId });
  return task && { outcome: row ? "updated" : "not_queued", task };
}
