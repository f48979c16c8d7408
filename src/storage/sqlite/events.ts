/** The events of tasks: progress, log lines and returned attempts. */
import type { TaskEventBody } from "../../tasks/event.ts";
import type { Attempt, NewEvent, TaskKey } from "../storage.ts";
import type { SqliteDatabase } from "./database.ts";
import { STATUS } from "./schema.ts";

export function recordEvent(
  db: SqliteDatabase,
  { attempt, timeMs, body, displaces }: NewEvent & { readonly attempt: Attempt },
): number | undefined {
  db.live.take(attempt);
  const progress = body.kind === "progress" ? body : undefined;
  const row = db.get(
    `UPDATE tasks SET last_sequence = last_sequence + 1,
       progress_fraction = coalesce(?5, progress_fraction),
       progress_message = coalesce(?6, progress_message)
     WHERE deployment_id = ?1 AND task_id = ?2 AND lease_id = ?3 AND attempt = ?4
       AND status = ${STATUS.running}
     RETURNING last_sequence`,
    attempt.deploymentId,
    attempt.taskId,
    attempt.leaseId,
    attempt.attempt,
    progress?.fraction ?? null,
    progress?.message ?? null,
  );
  if (row === undefined) {
    return undefined;
  }
  const sequence = Number(row.last_sequence);
  insertEvent(db, { ...attempt, sequence, timeMs, body });
  if (displaces !== undefined) {
    db.run(
      `DELETE FROM task_events
       WHERE deployment_id = ?1 AND task_id = ?2 AND attempt = ?3
         AND body ->> '$.line' BETWEEN ?4 AND ?5`,
      attempt.deploymentId,
      attempt.taskId,
      attempt.attempt,
      displaces.first,
      displaces.last,
    );
  }
  return sequence;
}

export function insertEvent(
  db: SqliteDatabase,
  event: TaskKey & {
    readonly sequence: number;
    readonly timeMs: number;
    readonly attempt: number;
    readonly body: TaskEventBody;
  },
): void {
  db.run(
    `INSERT INTO task_events (deployment_id, task_id, sequence, time_ms, attempt, body)
     VALUES (?, ?, ?, ?, ?, ?)`,
    event.deploymentId,
    event.taskId,
    event.sequence,
    event.timeMs,
    event.attempt,
    JSON.stringify(event.body),
  );
}
