/** Finds the longest-waiting task of each endpoint, and the lengths of their queues. */
import type { OldestWaiting, QueueState } from "../queues.ts";
import type { Storage } from "../storage.ts";
import { MAX_PROMOTED_TASKS } from "./claim.ts";
import { COUNTED } from "./counts.ts";
import { STATUS } from "./schema.ts";
import { prepared, type Session } from "./session.ts";

/**
 * A loose index scan. The ready index is sorted by priority and due time, so
 * the oldest task of an endpoint is among the first ones of each priority: one
 * index step per priority in use, independent of the number of tasks. The next
 * claim promotes delayed tasks; they may be due before that.
 */
const QUEUES = prepared(
  "queue_states",
  `WITH RECURSIVE counted AS MATERIALIZED (
     SELECT deployment_id, endpoint, sum(queued)::bigint AS queued, sum(running)::bigint AS running
     FROM (${COUNTED}) AS parts GROUP BY deployment_id, endpoint HAVING sum(queued) > 0 OR sum(running) > 0
   ), waiting AS (
     SELECT deployment_id, endpoint FROM counted WHERE queued > 0
   ), ready AS (
     SELECT waiting.deployment_id, waiting.endpoint, highest.priority, highest.run_at_ms
     FROM waiting CROSS JOIN LATERAL (
       SELECT priority, run_at_ms FROM live_tasks
       WHERE deployment_id = waiting.deployment_id AND live_tasks.endpoint = waiting.endpoint
         AND status = ${STATUS.ready}
       ORDER BY priority DESC, run_at_ms LIMIT 1) AS highest
     UNION ALL
     SELECT ready.deployment_id, ready.endpoint, lower.priority, lower.run_at_ms
     FROM ready CROSS JOIN LATERAL (
       SELECT priority, run_at_ms FROM live_tasks
       WHERE deployment_id = ready.deployment_id AND live_tasks.endpoint = ready.endpoint
         AND status = ${STATUS.ready} AND live_tasks.priority < ready.priority
       ORDER BY priority DESC, run_at_ms LIMIT 1) AS lower
   ), due AS (
     SELECT deployment_id, endpoint, run_at_ms FROM ready
     UNION ALL
     SELECT waiting.deployment_id, waiting.endpoint, delayed.run_at_ms
     FROM waiting CROSS JOIN LATERAL (
       SELECT run_at_ms FROM live_tasks
       WHERE deployment_id = waiting.deployment_id AND live_tasks.endpoint = waiting.endpoint
         AND status = ${STATUS.scheduled} AND run_at_ms <= $2
       ORDER BY run_at_ms LIMIT 1) AS delayed
   )
   SELECT deployment_id, endpoint, queued, running, min(run_at_ms) AS due_at_ms
   FROM counted LEFT JOIN due USING (deployment_id, endpoint)
   GROUP BY deployment_id, endpoint, queued, running`,
);

export async function queueStates(
  session: Session,
  { deploymentIds, nowMs }: Parameters<Storage["queueStates"]>[0],
): Promise<QueueState[]> {
  const rows = await session.query(QUEUES, deploymentIds, nowMs);
  return rows.map((row) => ({
    deploymentId: String(row.deployment_id),
    endpoint: String(row.endpoint),
    queued: Number(row.queued),
    running: Number(row.running),
    oldestDueAtMs: row.due_at_ms === null ? undefined : Number(row.due_at_ms),
  }));
}

export async function oldestWaiting(
  session: Session,
  { deploymentId, nowMs }: Parameters<Storage["oldestWaiting"]>[0],
): Promise<OldestWaiting[]> {
  const states = await queueStates(session, { deploymentIds: [deploymentId], nowMs });
  return states.flatMap(({ endpoint, oldestDueAtMs: dueAtMs }) =>
    dueAtMs === undefined ? [] : [{ endpoint, dueAtMs }],
  );
}

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
