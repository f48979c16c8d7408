/** How tasks end without having started: cancelled, or expired. */
import { EXPIRED } from "../../tasks/failure.ts";
import type { Task } from "../../tasks/task.ts";
import type { CancelOutcome, TaskKey } from "../storage.ts";
import { countedAs } from "./counts.ts";
import { readTask } from "./read.ts";
import { TASK_COLUMNS, toTask } from "./rows.ts";
import { STATUS } from "./schema.ts";
import { prepared, type Session } from "./session.ts";

/** SQL that moves tasks from `live_tasks` to `finished_tasks`; `$1` is the time. */
function finish(parameters: {
  readonly which: string;
  readonly status: number;
  readonly failure: string;
}): string {
  const { which, status, failure } = parameters;
  return `WITH gone AS (
      DELETE FROM live_tasks WHERE status < ${STATUS.running} AND ${which} RETURNING *
    ), counted AS (${countedAs("gone", "-")})
    INSERT INTO finished_tasks (deployment_id, task_id, endpoint, status, created_at_ms,
      started_at_ms, finished_at_ms, expires_at_ms, attempt, failed_attempts, started_sequence,
      last_sequence, progress, retry_of, idempotency_key, failure, arguments, priority, run_at_ms,
      start_by_ms, trace)
    SELECT deployment_id, task_id, endpoint, ${status}, created_at_ms,
      started_at_ms, $1, greatest(expires_at_ms, $1 + retention_ms), attempt, failed_attempts, 0,
      last_sequence + 1, progress, retry_of, idempotency_key, ${failure}, arguments, priority,
      run_at_ms, start_by_ms, trace
    FROM gone
    RETURNING ${TASK_COLUMNS}`;
}

const CANCEL = prepared(
  "cancel_task",
  finish({
    which: "deployment_id = $2 AND task_id = $3",
    status: STATUS.cancelled,
    failure: "NULL",
  }),
);

export async function cancelTask(
  session: Session,
  { deploymentId, taskId, nowMs }: TaskKey & { readonly nowMs: number },
): Promise<CancelOutcome | undefined> {
  const [row] = await session.query(CANCEL, nowMs, deploymentId, taskId);
  if (row) {
    return { outcome: "cancelled", task: toTask(row) };
  }
  const task = await readTask(session, { deploymentId, taskId });
  return task && { outcome: "not_queued", task };
}

const EXPIRE = prepared(
  "expire_tasks",
  finish({
    which: `(deployment_id, task_id) IN (
      SELECT deployment_id, task_id FROM live_tasks
      WHERE status <= ${STATUS.ready} AND start_by_ms <= $1
      ORDER BY start_by_ms LIMIT $2 FOR UPDATE SKIP LOCKED)`,
    status: STATUS.failure,
    failure: "$3",
  }),
);

export async function expireTasks(
  session: Session,
  { nowMs, limit }: { readonly nowMs: number; readonly limit: number },
): Promise<Task[]> {
  const rows = await session.query(EXPIRE, nowMs, limit, JSON.stringify(EXPIRED));
  return rows.map(toTask);
}
