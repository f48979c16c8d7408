/** Cancels a task that is queued: one that runs or has ended stays as it is. */
import type { CancelOutcome, TaskKey } from "../storage.ts";
import { finishUnstarted } from "./finish-unstarted.ts";
import { readTask } from "./read.ts";
import { toTask } from "./rows.ts";
import { STATUS } from "./schema.ts";
import { prepared, type Session } from "./session.ts";

const CANCEL = prepared(
  "cancel_task",
  finishUnstarted({
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
