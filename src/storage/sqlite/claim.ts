import type { ClaimedTask, Storage } from "../storage.ts";
import type { Database } from "./database.ts";
import { readPayload } from "./payloads.ts";
import { type Row, TASK_COLUMNS, toTask } from "./rows.ts";
import { STATUS } from "./schema.ts";

export function claimTasks(
  db: Database,
  { deploymentId, nowMs, claims }: Parameters<Storage["claimTasks"]>[0],
): ClaimedTask[] {
  db.run(
    `UPDATE tasks SET status = ${STATUS.ready}
     WHERE deployment_id = ? AND status = ${STATUS.scheduled} AND run_at_ms <= ?`,
    deploymentId,
    nowMs,
  );
  return claims.flatMap(({ endpoint, leaseId, limit }) => {
    const rows = db.all(
      `UPDATE tasks SET status = ${STATUS.running}, attempt = attempt + 1, started_at_ms = ?1,
         lease_id = ?2, started_sequence = last_sequence + 1, last_sequence = last_sequence + 1,
         progress_fraction = NULL, progress_message = NULL, abort_requested = 0
       WHERE deployment_id = ?3 AND task_id IN (
         SELECT task_id FROM tasks INDEXED BY tasks_ready
         WHERE deployment_id = ?3 AND endpoint = ?4 AND status = ${STATUS.ready}
           AND (start_by_ms IS NULL OR start_by_ms > ?1)
         ORDER BY priority DESC, run_at_ms, task_id LIMIT ?5)
         AND EXISTS (SELECT 1 FROM leases WHERE lease_id = ?2)
       RETURNING ${TASK_COLUMNS}, priority, run_at_ms, lease_id, arguments`,
      nowMs,
      leaseId,
      deploymentId,
      endpoint,
      limit,
    );
    db.counts.add(deploymentId, endpoint, { queued: -rows.length, running: rows.length });
    return rows.sort(inOrder).map((row) => toClaimed(db, row));
  });
}

/** RETURNING promises no order. */
function inOrder(a: Row, b: Row): number {
  return (
    Number(b.priority) - Number(a.priority) ||
    Number(a.run_at_ms) - Number(b.run_at_ms) ||
    (String(a.task_id) < String(b.task_id) ? -1 : 1)
  );
}

function toClaimed(db: Database, row: Row): ClaimedTask {
  const task = toTask(row);
  const payload = readPayload(db, { ...task, side: "arguments" }, row.arguments);
  if (payload === undefined) {
    throw new Error(`task ${task.taskId} has lost its arguments`);
  }
  return { task, leaseId: String(row.lease_id), arguments: payload };
}

export function nextRunAt(
  db: Database,
  { deploymentId, nowMs }: Parameters<Storage["nextRunAt"]>[0],
): number | undefined {
  const row = db.get(
    `SELECT min(run_at_ms) AS next FROM tasks
     WHERE deployment_id = ? AND status = ${STATUS.scheduled} AND run_at_ms > ?`,
    deploymentId,
    nowMs,
  );
  return typeof row?.next === "number" ? row.next : undefined;
}
