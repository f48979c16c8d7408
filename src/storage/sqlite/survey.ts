import type { Storage, Survey } from "../storage.ts";
import { countDue } from "./claim.ts";
import type { SqliteDatabase } from "./database.ts";
import { STATUS } from "./schema.ts";

export function survey(
  db: SqliteDatabase,
  { nowMs, deploymentIds, untilMs = nowMs }: Parameters<Storage["survey"]>[0],
): Survey {
  const due = deploymentIds.flatMap((deploymentId) =>
    countDue(db, { deploymentId, nowMs, limit: 1 }).map(({ endpoint }) => ({
      deploymentId,
      endpoint,
    })),
  );
  const asked = new Set(deploymentIds);
  return {
    expiredLeases:
      db.get("SELECT 1 FROM leases WHERE expires_at_ms <= ? LIMIT 1", nowMs) !== undefined,
    overdueTasks:
      db.get(
        `SELECT 1 FROM tasks INDEXED BY tasks_start_by
         WHERE status <= ${STATUS.ready} AND start_by_ms IS NOT NULL AND start_by_ms <= ? LIMIT 1`,
        nowMs,
      ) !== undefined,
    due,
    schedules: nextTimes(db, untilMs).filter(({ deploymentId }) => asked.has(deploymentId)),
    suspects: due
      .map(({ deploymentId, endpoint }) => {
        const found = db.get(
          `SELECT count(*) AS count FROM tasks INDEXED BY tasks_suspect
           WHERE suspect = 1 AND status = ${STATUS.ready} AND deployment_id = ? AND endpoint = ?
             AND (start_by_ms IS NULL OR start_by_ms > ?)`,
          deploymentId,
          endpoint,
          nowMs,
        );
        return { deploymentId, endpoint, count: Number(found?.count) };
      })
      .filter(({ count }) => count > 0),
  };
}

/** The next time of each deployment with a schedule until then, by one statement for all of them. */
function nextTimes(db: SqliteDatabase, untilMs: number): Survey["schedules"] {
  return db
    .all(
      `SELECT deployment_id, min(next_at_ms) AS next_at_ms FROM schedules INDEXED BY schedules_due
       WHERE next_at_ms IS NOT NULL AND next_at_ms <= ? GROUP BY deployment_id`,
      untilMs,
    )
    .map((row) => ({
      deploymentId: String(row.deployment_id),
      nextAtMs: Number(row.next_at_ms),
    }));
}
