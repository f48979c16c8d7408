/** Reads of single tasks: state, arguments, result and history. */
import type { Payload } from "../../protocol/messages.ts";
import type { TaskHistory } from "../../tasks/event.ts";
import type { Task } from "../../tasks/task.ts";
import type { TaskKey } from "../storage.ts";
import { toEvent } from "../stored.ts";
import type { SqliteDatabase } from "./database.ts";
import { readPayload } from "./payloads.ts";
import { TASK_COLUMNS, toTask } from "./rows.ts";

export function readTask(db: SqliteDatabase, { deploymentId, taskId }: TaskKey): Task | undefined {
  const live = db.live.get({ deploymentId, taskId });
  if (live) {
    return live.task;
  }
  const row = db.get(
    `SELECT ${TASK_COLUMNS} FROM tasks WHERE deployment_id = ? AND task_id = ?`,
    deploymentId,
    taskId,
  );
  return row && toTask(row);
}

export function readArguments(
  db: SqliteDatabase,
  { deploymentId, taskId }: TaskKey,
): Payload | undefined {
  const row = db.get(
    "SELECT arguments FROM tasks WHERE deployment_id = ? AND task_id = ?",
    deploymentId,
    taskId,
  );
  return row && readPayload(db, { deploymentId, taskId, side: "arguments" }, row.arguments);
}

export function readResult(
  db: SqliteDatabase,
  { deploymentId, taskId }: TaskKey,
): Payload | undefined {
  const row = db.get(
    "SELECT result FROM tasks WHERE deployment_id = ? AND task_id = ?",
    deploymentId,
    taskId,
  );
  return row && readPayload(db, { deploymentId, taskId, side: "result" }, row.result);
}

export function readHistory(
  db: SqliteDatabase,
  parameters: TaskKey & { readonly afterSequence: number; readonly limit: number },
): TaskHistory | undefined {
  const { deploymentId, taskId, afterSequence, limit } = parameters;
  const row = db.get(
    `SELECT ${TASK_COLUMNS}, started_sequence, (
       SELECT max(last_sequence) FROM task_pieces AS p WHERE p.deployment_id = tasks.deployment_id
         AND p.task_id = tasks.task_id AND p.attempt = tasks.attempt) AS last_piece
     FROM tasks WHERE deployment_id = ? AND task_id = ?`,
    deploymentId,
    taskId,
  );
  if (row === undefined) {
    return undefined;
  }
  const events = db.all(
    `SELECT sequence, time_ms, attempt, body FROM task_events
     WHERE deployment_id = ? AND task_id = ? AND sequence > ? ORDER BY sequence LIMIT ?`,
    deploymentId,
    taskId,
    afterSequence,
    limit,
  );
  return {
    task: toTask(row),
    startedSequence: Number(row.started_sequence),
    stored: events.map(toEvent),
    lastPiece: Number(row.last_piece ?? 0),
  };
}
