/** Reads of tasks: state, arguments, result and history. */
import type { Payload } from "../../protocol/messages.ts";
import type { TaskHistory } from "../../tasks/event.ts";
import type { Task } from "../../tasks/task.ts";
import type { TaskKey } from "../storage.ts";
import { toEvent } from "../stored.ts";
import { readPayload } from "./payloads.ts";
import { keyColumns, nameOf, TASK_COLUMNS, toTask } from "./rows.ts";
import { STATUS } from "./schema.ts";
import { type PostgresRow, prepared, type Session } from "./session.ts";

const ONE_TASK = "FROM tasks WHERE deployment_id = $1 AND task_id = $2";

const READ_TASK = prepared("read_task", `SELECT ${TASK_COLUMNS} ${ONE_TASK}`);

export async function readTask(
  session: Session,
  { deploymentId, taskId }: TaskKey,
): Promise<Task | undefined> {
  const [row] = await session.query(READ_TASK, deploymentId, taskId);
  return row && toTask(row);
}

const READ_TASKS = prepared(
  "read_tasks",
  `SELECT ${TASK_COLUMNS}
   FROM unnest((SELECT $1::text[]), $2::text[]) AS given (deployment_id, task_id)
   JOIN tasks USING (deployment_id, task_id)`,
);

/** Reads tasks into a map by `nameOf` their keys, without those that do not exist. */
export async function readTasks(
  session: Session,
  keys: readonly TaskKey[],
): Promise<Map<string, Task>> {
  if (keys.length === 0) {
    return new Map();
  }
  const tasks = (await session.query(READ_TASKS, ...keyColumns(keys))).map(toTask);
  return new Map(tasks.map((task) => [nameOf(task), task]));
}

const READ_ARGUMENTS = prepared("read_arguments", `SELECT arguments ${ONE_TASK}`);

export async function readArguments(
  session: Session,
  { deploymentId, taskId }: TaskKey,
): Promise<Payload | undefined> {
  const [row] = await session.query(READ_ARGUMENTS, deploymentId, taskId);
  return row && readPayload(session, { deploymentId, taskId, side: "arguments" }, row.arguments);
}

const READ_RESULTS = prepared(
  "read_results",
  `SELECT deployment_id, task_id, result
   FROM unnest((SELECT $1::text[]), $2::text[]) AS given (deployment_id, task_id)
   JOIN finished_tasks USING (deployment_id, task_id)
   WHERE status IN (${STATUS.success}, ${STATUS.failure})`,
);

/** The column of a result, from which `readPayload` reads it. */
export interface ResultColumn {
  readonly inline: unknown;
}

/** Finds the results of tasks, in order; undefined for tasks that have none. */
export async function findResults(
  session: Session,
  keys: readonly TaskKey[],
): Promise<(ResultColumn | undefined)[]> {
  const rows = await session.query(READ_RESULTS, ...keyColumns(keys));
  const found = new Map(
    rows.map(({ deployment_id, task_id, result }) => [
      `${deployment_id}/${task_id}`,
      { inline: result },
    ]),
  );
  return keys.map((key) => found.get(nameOf(key)));
}

/** One statement for the task and its events, so that both show the same state. */
const READ_HISTORY = prepared(
  "read_history",
  `SELECT ${TASK_COLUMNS}, started_sequence, (
     SELECT coalesce(json_agg(found ORDER BY found.sequence), '[]') FROM (
       SELECT sequence, time_ms, attempt, body FROM task_events
       WHERE deployment_id = $1 AND task_id = $2 AND sequence > $3
       ORDER BY sequence LIMIT $4) AS found) AS events, (
     SELECT max(p.last_sequence) FROM task_pieces p
     WHERE p.deployment_id = $1 AND p.task_id = $2 AND p.attempt = tasks.attempt) AS last_piece
   ${ONE_TASK}`,
);

export async function readHistory(
  session: Session,
  parameters: TaskKey & { readonly afterSequence: number; readonly limit: number },
): Promise<TaskHistory | undefined> {
  const { deploymentId, taskId, afterSequence, limit } = parameters;
  const [row] = await session.query(READ_HISTORY, deploymentId, taskId, afterSequence, limit);
  return (
    row && {
      task: toTask(row),
      startedSequence: Number(row.started_sequence),
      stored: (row.events as readonly PostgresRow[]).map(toEvent),
      lastPiece: Number(row.last_piece ?? 0),
    }
  );
}
