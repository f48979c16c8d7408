/** Cancels tasks that are queued: those that run or have ended stay as they are. */
import type { Task } from "../../tasks/task.ts";
import type { CancelOutcome, TaskKey } from "../storage.ts";
import { finishUnstarted } from "./finish-unstarted.ts";
import { readTask, readTasks } from "./read.ts";
import { keyColumns, nameOf, toTask } from "./rows.ts";
import { STATUS } from "./schema.ts";
import { once, prepared, type Session } from "./session.ts";

type Cancellation = TaskKey & { readonly nowMs: number };

const CANCEL = prepared(
  "cancel_task",
  finishUnstarted({
    which: "deployment_id = $2 AND task_id = $3",
    status: STATUS.cancelled,
    failure: "NULL",
  }),
);

/** Passes over what another transaction holds, so that it waits for none while others wait for it. */
const CANCEL_FREE = prepared(
  "cancel_free_tasks",
  finishUnstarted({
    which: `(deployment_id, task_id) IN (${once(
      `SELECT deployment_id, task_id
      FROM unnest((SELECT $2::text[]), $3::text[]) AS given (deployment_id, task_id)
      JOIN live_tasks USING (deployment_id, task_id) FOR UPDATE OF live_tasks SKIP LOCKED`,
    )})`,
    status: STATUS.cancelled,
    failure: "NULL",
  }),
);

/** Cancels all that no other transaction holds by one statement, and those that one holds one by one. */
export async function cancelTasks(
  session: Session,
  asked: readonly Cancellation[],
): Promise<(CancelOutcome | undefined)[]> {
  const [only] = asked;
  if (only !== undefined && asked.length === 1) {
    return [await cancelTask(session, only)];
  }
  const cancelled = await cancelFree(session, asked);
  // One that is asked for twice is cancelled once.
  const first = new Map([...asked].reverse().map((one) => [nameOf(one), one]));
  const left = asked.filter((one) => !cancelled.has(nameOf(one)) || first.get(nameOf(one)) !== one);
  const found = await readTasks(session, left);
  return Promise.all(
    asked.map((one) => {
      const name = nameOf(one);
      const task = found.get(name);
      if (task?.status === "queued") {
        return cancelTask(session, one);
      }
      const done = first.get(name) === one ? cancelled.get(name) : undefined;
      return done ? { outcome: "cancelled", task: done } : task && { outcome: "not_queued", task };
    }),
  );
}

async function cancelFree(
  session: Session,
  asked: readonly Cancellation[],
): Promise<Map<string, Task>> {
  const nowMs = Math.max(...asked.map((one) => one.nowMs));
  const rows = await session.query(CANCEL_FREE, nowMs, ...keyColumns(asked));
  return new Map(rows.map(toTask).map((task) => [nameOf(task), task]));
}

async function cancelTask(
  session: Session,
  { deploymentId, taskId, nowMs }: Cancellation,
): Promise<CancelOutcome | undefined> {
  const [row] = await session.query(CANCEL, nowMs, deploymentId, taskId);
  if (row) {
    return { outcome: "cancelled", task: toTask(row) };
  }
  const task = await readTask(session, { deploymentId, taskId });
  return task && { outcome: "not_queued", task };
}
