/** Deletion of expired finished tasks, and of the tasks of deleted deployments. */

import { KEY_TIME_MS } from "../claims-by-key.ts";
import { untold } from "../sql/hosting/webhooks.ts";
import type { Storage } from "../storage.ts";
import { detachBlob } from "./blobs.ts";
import type { SqliteDatabase } from "./database.ts";
import type { SqliteRow } from "./rows.ts";
import { STATUS } from "./schema.ts";

export function pruneFinished(
  db: SqliteDatabase,
  { nowMs, limit }: Parameters<Storage["pruneFinished"]>[0],
): number {
  const expired = db.all(
    `DELETE FROM tasks WHERE (deployment_id, task_id) IN (
       SELECT deployment_id, task_id FROM tasks t INDEXED BY tasks_expiry
       WHERE status >= ${STATUS.success} AND expires_at_ms <= ? AND NOT EXISTS (${untold("t")})
       ORDER BY expires_at_ms LIMIT ?)
     RETURNING deployment_id, task_id, endpoint, idempotency_key`,
    nowMs,
    limit,
  );
  for (const row of expired) {
    deleteBelongings(db, row, nowMs);
  }
  const forgotten = db.run(
    `DELETE FROM deleted_tasks WHERE (deployment_id, task_id) IN (
       SELECT deployment_id, task_id FROM deleted_tasks
       WHERE expires_at_ms <= ? ORDER BY expires_at_ms LIMIT ?)`,
    nowMs,
    limit,
  );
  return Math.max(expired.length, forgotten, pruneKeys(db, nowMs, limit));
}

/**
 * Forgets starts that no window can hold, what keys have had that are away, and the turns of endpoints
 * where no key has a task, or had one of late that counts.
 */
function pruneKeys(db: SqliteDatabase, nowMs: number, limit: number): number {
  db.run(
    `DELETE FROM key_turns AS own WHERE NOT EXISTS (
       SELECT 1 FROM tasks INDEXED BY tasks_ready_by_key
       WHERE deployment_id = own.deployment_id AND endpoint = own.endpoint
         AND status = ${STATUS.ready} AND key IS NOT NULL)
       AND NOT EXISTS (
         SELECT 1 FROM key_times
         WHERE deployment_id = own.deployment_id AND endpoint = own.endpoint)`,
  );
  db.timedEndpoints.forget();
  const runs = db.run(
    `DELETE FROM key_runs WHERE rowid IN (
       SELECT rowid FROM key_runs WHERE ended_at_ms <= ? ORDER BY ended_at_ms LIMIT ?)`,
    nowMs - KEY_TIME_MS,
    limit,
  );
  const times = db.run(
    `DELETE FROM key_times WHERE (deployment_id, endpoint, key) IN (
       SELECT deployment_id, endpoint, key FROM key_times WHERE expires_at_ms <= ?
       ORDER BY expires_at_ms, deployment_id, endpoint, key LIMIT ?)`,
    nowMs,
    limit,
  );
  const starts = db.run(
    `DELETE FROM key_starts WHERE (deployment_id, endpoint, key, number) IN (
       SELECT deployment_id, endpoint, key, number FROM key_starts AS own
       WHERE expires_at_ms <= ? AND NOT EXISTS (
         SELECT 1 FROM tasks INDEXED BY tasks_ready_by_key
         WHERE deployment_id = own.deployment_id AND endpoint = own.endpoint
           AND status = ${STATUS.ready} AND key = own.key)
       ORDER BY expires_at_ms, deployment_id, endpoint, key, number LIMIT ?)`,
    nowMs,
    limit,
  );
  const unbegun = db.run(
    `DELETE FROM key_unbegun WHERE (deployment_id, endpoint, task_id, attempt) IN (
       SELECT deployment_id, endpoint, task_id, attempt FROM key_unbegun
       WHERE expires_at_ms <= ? ORDER BY expires_at_ms LIMIT ?)`,
    nowMs,
    limit,
  );
  return Math.max(runs, times, starts, unbegun);
}

export function pruneDeleted(
  db: SqliteDatabase,
  { nowMs, limit }: Parameters<Storage["pruneDeleted"]>[0],
): number {
  const left = db.all(
    `DELETE FROM tasks WHERE (deployment_id, task_id) IN (
       SELECT t.deployment_id, t.task_id
       FROM deleted_deployments d CROSS JOIN tasks t ON t.deployment_id = d.deployment_id
       WHERE d.look_after_ms <= ? LIMIT ?)
     RETURNING deployment_id, task_id, endpoint, status, idempotency_key`,
    nowMs,
    limit,
  );
  for (const row of left) {
    deleteBelongings(db, row, nowMs);
    const task = { deploymentId: String(row.deployment_id), taskId: String(row.task_id) };
    db.live.take(task);
    const status = Number(row.status);
    if (status <= STATUS.running) {
      const count = status === STATUS.running ? { running: -1 } : { queued: -1 };
      db.counts.add(task.deploymentId, String(row.endpoint), count);
    }
  }
  if (left.length === 0) {
    // Counters are written at the end of a transaction, so they are deleted once
    // nothing else was.
    const counts = db.all(
      `DELETE FROM queue_counts
       WHERE deployment_id IN (SELECT deployment_id FROM deleted_deployments)
       RETURNING deployment_id`,
    );
    for (const row of counts) {
      db.counts.drop(String(row.deployment_id));
    }
  }
  return left.length;
}

/** Deletes the data of a task whose row was deleted. */
export function deleteBelongings(db: SqliteDatabase, row: SqliteRow, nowMs: number): void {
  const key = [String(row.deployment_id), String(row.task_id)] as const;
  const parts = db.all(
    "DELETE FROM payload_parts WHERE deployment_id = ? AND task_id = ? RETURNING blob_id",
    ...key,
  );
  for (const { blob_id } of parts) {
    if (typeof blob_id === "string") {
      detachBlob(db, blob_id, nowMs);
    }
  }
  db.run("DELETE FROM task_events WHERE deployment_id = ? AND task_id = ?", ...key);
  db.run("DELETE FROM task_pieces WHERE deployment_id = ? AND task_id = ?", ...key);
  if (typeof row.idempotency_key === "string") {
    db.run(
      `DELETE FROM idempotency_keys
       WHERE deployment_id = ? AND endpoint = ? AND key = ? AND task_id = ?`,
      key[0],
      String(row.endpoint),
      row.idempotency_key,
      key[1],
    );
  }
}
