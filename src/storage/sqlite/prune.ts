import type { Storage } from "../storage.ts";
import type { Database } from "./database.ts";
import { STATUS } from "./schema.ts";

export function pruneFinished(
  db: Database,
  { nowMs, limit }: Parameters<Storage["pruneFinished"]>[0],
): number {
  const expired = db.all(
    `DELETE FROM tasks WHERE (deployment_id, task_id) IN (
       SELECT deployment_id, task_id FROM tasks INDEXED BY tasks_expiry
       WHERE status >= ${STATUS.success} AND expires_at_ms <= ?
       ORDER BY expires_at_ms LIMIT ?)
     RETURNING deployment_id, task_id, endpoint, idempotency_key`,
    nowMs,
    limit,
  );
  for (const row of expired) {
    const key = [String(row.deployment_id), String(row.task_id)] as const;
    db.run("DELETE FROM payload_parts WHERE deployment_id = ? AND task_id = ?", ...key);
    db.run("DELETE FROM task_events WHERE deployment_id = ? AND task_id = ?", ...key);
    if (typeof row.idempotency_key === "string") {
      db.run(
        "DELETE FROM idempotency_keys WHERE deployment_id = ? AND endpoint = ? AND key = ?",
        key[0],
        String(row.endpoint),
        row.idempotency_key,
      );
    }
  }
  return expired.length;
}
