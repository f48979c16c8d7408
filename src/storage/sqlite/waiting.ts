/** Finds the longest-waiting task of each endpoint, and the lengths of their queues. */
import type { SQLInputValue } from "node:sqlite";
import type { OldestWaiting, QueueState } from "../queues.ts";
import type { Storage } from "../storage.ts";
import { MAX_PROMOTED_TASKS } from "./claim.ts";
import type { SqliteDatabase } from "./database.ts";
import { STATUS } from "./schema.ts";

/** Above every possible priority. */
const ABOVE_ALL = 1_000;

/**
 * A loose index scan. The ready index is sorted by priority and due time, so
 * the oldest task of an endpoint is among the first ones of each priority: one
 * index step per priority in use, independent of the number of tasks.
 */
export function oldestWaiting(
  db: SqliteDatabase,
  { deploymentId, nowMs }: Parameters<Storage["oldestWaiting"]>[0],
): OldestWaiting[] {
  return db.counts
    .list(deploymentId)
    .filter(({ queued }) => queued > 0)
    .flatMap(({ endpoint }) => {
      const dueAtMs = Math.min(
        oldestReady(db, deploymentId, endpoint),
        oldestDelayed(db, { deploymentId, endpoint, nowMs }),
      );
      return dueAtMs === Number.POSITIVE_INFINITY ? [] : [{ endpoint, dueAtMs }];
    });
}

export function queueStates(
  db: SqliteDatabase,
  { deploymentIds, nowMs }: Parameters<Storage["queueStates"]>[0],
): QueueState[] {
  return deploymentIds.flatMap((deploymentId) => {
    const counts = db.counts
      .list(deploymentId)
      .filter(({ queued, running }) => queued > 0 || running > 0);
    const oldest = new Map(
      oldestWaiting(db, { deploymentId, nowMs }).map(({ endpoint, dueAtMs }) => [
        endpoint,
        dueAtMs,
      ]),
    );
    return counts.map((count) => ({
      deploymentId,
      ...count,
      oldestDueAtMs: oldest.get(count.endpoint),
    }));
  });
}

function oldestReady(db: SqliteDatabase, deploymentId: string, endpoint: string): number {
  let oldestMs = Number.POSITIVE_INFINITY;
  for (let above = ABOVE_ALL; ; ) {
    const row = db.get(
      `SELECT priority, run_at_ms FROM tasks INDEXED BY tasks_ready
       WHERE deployment_id = ? AND endpoint = ? AND status = ${STATUS.ready} AND priority < ?
       ORDER BY priority DESC, run_at_ms LIMIT 1`,
      deploymentId,
      endpoint,
      above,
    );
    if (row === undefined) {
      return oldestMs;
    }
    oldestMs = Math.min(oldestMs, Number(row.run_at_ms));
    above = Number(row.priority);
  }
}

/** The next claim promotes delayed tasks; they may be due before that. */
function oldestDelayed(
  db: SqliteDatabase,
  of: { readonly deploymentId: string; readonly endpoint: string; readonly nowMs: number },
): number {
  const row = db.get(
    `SELECT run_at_ms FROM tasks INDEXED BY tasks_scheduled_by_endpoint
     WHERE deployment_id = ? AND status = ${STATUS.scheduled} AND run_at_ms <= ? AND endpoint = ?
     ORDER BY run_at_ms LIMIT 1`,
    of.deploymentId,
    of.nowMs,
    of.endpoint,
  );
  return row === undefined ? Number.POSITIVE_INFINITY : Number(row.run_at_ms);
}

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
