import type { Storage } from "../storage.ts";
import { MAX_PROMOTED_TASKS } from "./claim.ts";
import { STATUS } from "./schema.ts";
import { prepared, type Session } from "./session.ts";

/**
 * Counts the tasks ahead: ready tasks in two ranges of their index, and as many
 * due delayed tasks as the next claim would promote. So a position costs the
 * same for a queue of any length.
 */
const POSITION = prepared(
  "queue_position",
  `WITH task AS MATERIALIZED (
     SELECT task_id, endpoint, priority, run_at_ms FROM live_tasks
     WHERE deployment_id = $1 AND task_id = $2
       AND (status = ${STATUS.ready} OR (status = ${STATUS.scheduled} AND run_at_ms <= $3))
       AND (start_by_ms IS NULL OR start_by_ms > $3))
   SELECT (
     SELECT count(*) FROM (
       (SELECT 1 FROM live_tasks AS other
        WHERE other.deployment_id = $1 AND other.endpoint = task.endpoint
          AND status = ${STATUS.ready} AND other.priority > task.priority
          AND (start_by_ms IS NULL OR start_by_ms > $3)
        ORDER BY other.priority DESC, other.run_at_ms, other.task_id LIMIT $4)
       UNION ALL
       (SELECT 1 FROM live_tasks AS other
        WHERE other.deployment_id = $1 AND other.endpoint = task.endpoint
          AND status = ${STATUS.ready} AND other.priority = task.priority
          AND (other.run_at_ms, other.task_id) < (task.run_at_ms, task.task_id)
          AND (start_by_ms IS NULL OR start_by_ms > $3)
        ORDER BY other.run_at_ms, other.task_id LIMIT $4)
       UNION ALL
       (SELECT 1 FROM (
          SELECT priority, run_at_ms, task_id FROM live_tasks
          WHERE deployment_id = $1 AND live_tasks.endpoint = task.endpoint
            AND status = ${STATUS.scheduled} AND run_at_ms <= $3
            AND (start_by_ms IS NULL OR start_by_ms > $3)
          ORDER BY run_at_ms LIMIT ${MAX_PROMOTED_TASKS}) AS other
        WHERE other.priority > task.priority OR (other.priority = task.priority
          AND (other.run_at_ms, other.task_id) < (task.run_at_ms, task.task_id)))
       LIMIT $4) AS ahead) AS ahead
   FROM task`,
);

export async function queuePosition(
  session: Session,
  { deploymentId, taskId, nowMs, limit }: Parameters<Storage["queuePosition"]>[0],
): Promise<number | undefined> {
  const [row] = await session.query(POSITION, deploymentId, taskId, nowMs, limit);
  return row && Number(row.ahead);
}
