/** Ends queued tasks that did not start in time. */
import { EXPIRED } from "../../tasks/failure.ts";
import type { Task } from "../../tasks/task.ts";
import { finishUnstarted } from "./finish-unstarted.ts";
import { toTask } from "./rows.ts";
import { STATUS } from "./schema.ts";
import { once, prepared, type Session } from "./session.ts";

const EXPIRE = prepared(
  "expire_tasks",
  finishUnstarted({
    which: `(deployment_id, task_id) IN (${once(
      `SELECT deployment_id, task_id FROM live_tasks
      WHERE status <= ${STATUS.ready} AND start_by_ms <= $1
      ORDER BY start_by_ms LIMIT $2 FOR UPDATE SKIP LOCKED`,
    )})`,
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
