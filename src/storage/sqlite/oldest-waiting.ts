/** Finds the longest-waiting task of each endpoint, and the lengths of their queues. */
import type { OldestWaiting, QueueState } from "../queues.ts";
import type { Storage } from "../storage.ts";
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
