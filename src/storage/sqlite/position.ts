import type { SQLInputValue } from "node:sqlite";
import type { Storage } from "../storage.ts";
import { MAX_PROMOTED_TASKS } from "./claim.ts";
import type { SqliteDatabase } from "./database.ts";
import { STATUS } from "./schema.ts";

/**
 * Counts the tasks ahead: ready tasks in two ranges of their index, and as many
 * due delayed tasks as the next claim would promote. So a position costs the
 * same for a queue of any length.
 */
const AHEAD = `
  SELECT count(*) AS ahead FROM (
    SELECT 1 FROM tasks INDEXED BY tasks_ready
    WHERE deployment_id = ?1 AND endpoint = ?2 AND status = ${STATUS.ready}
      AND priority > ?3 AND (start_by_ms IS NULL OR start_by_ms > ?6)
    UNION ALL
    SELECT 1 FROM tasks INDEXED BY tasks_ready
    WHERE deployment_id = ?1 AND endpoint = ?2 AND status = ${STATUS.ready}
      AND priority = ?3 AND (run_at_ms, task_id) < (?4, ?5)
      AND (start_by_ms IS NULL OR start_by_ms > ?6)
    UNION ALL
    SELECT 1 FROM (
      SELECT priority, run_at_ms, task_id FROM tasks INDEXED BY tasks_scheduled_by_endpoint
      WHERE deployment_id = ?1 AND endpoint = ?2 AND status = ${STATUS.scheduled}
        AND run_at_ms <= ?6 AND (start_by_ms IS NULL OR start_by_ms > ?6)
      ORDER BY run_at_ms LIMIT ${MAX_PROMOTED_TASKS})
    WHERE priority > ?3 OR (priority = ?3 AND (run_at_ms, task_id) < (?4, ?5))
    LIMIT ?7)`;

export function queuePosition(
  db: SqliteDatabase,
  { deploymentId, taskId, nowMs, limit }: Parameters<Storage["queuePosition"]>[0],
): number | undefined {
  const task = db.get(
    `SELECT endpoint, priority, run_at_ms FROM tasks
     WHERE deployment_id = ?1 AND task_id = ?2
       AND (status = ${STATUS.ready} OR (status = ${STATUS.scheduled} AND run_at_ms <= ?3))
       AND (start_by_ms IS NULL OR start_by_ms > ?3)`,
    deploymentId,
    taskId,
    nowMs,
  );
  if (task === undefined) {
    return undefined;
  }
  const row = db.get(
    AHEAD,
    deploymentId,
    task.endpoint as SQLInputValue,
    task.priority as SQLInputValue,
    task.run_at_ms as SQLInputValue,
    taskId,
    nowMs,
    limit,
  );
  return Number(row?.ahead ?? 0);
}
