import type { OldestWaiting, Storage } from "../storage.ts";
import { STATUS } from "./schema.ts";
import { prepared, type Session } from "./session.ts";

/**
 * A loose index scan. The ready index is sorted by priority and due time, so
 * the oldest task of an endpoint is among the first ones of each priority: one
 * index step per priority in use, independent of the number of tasks. The next
 * claim promotes delayed tasks; they may be due before that.
 */
const OLDEST = prepared(
  "oldest_waiting",
  `WITH RECURSIVE waiting AS (
     SELECT endpoint FROM (
       SELECT endpoint, queued FROM queue_counts WHERE deployment_id = $1
       UNION ALL
       SELECT endpoint, queued FROM queue_count_deltas WHERE deployment_id = $1
     ) AS counted GROUP BY endpoint HAVING sum(queued) > 0
   ), ready AS (
     SELECT waiting.endpoint, highest.priority, highest.run_at_ms
     FROM waiting CROSS JOIN LATERAL (
       SELECT priority, run_at_ms FROM live_tasks
       WHERE deployment_id = $1 AND live_tasks.endpoint = waiting.endpoint
         AND status = ${STATUS.ready}
       ORDER BY priority DESC, run_at_ms LIMIT 1) AS highest
     UNION ALL
     SELECT ready.endpoint, lower.priority, lower.run_at_ms
     FROM ready CROSS JOIN LATERAL (
       SELECT priority, run_at_ms FROM live_tasks
       WHERE deployment_id = $1 AND live_tasks.endpoint = ready.endpoint
         AND status = ${STATUS.ready} AND live_tasks.priority < ready.priority
       ORDER BY priority DESC, run_at_ms LIMIT 1) AS lower
   )
   SELECT endpoint, min(run_at_ms) AS due_at_ms FROM (
     SELECT endpoint, run_at_ms FROM ready
     UNION ALL
     SELECT waiting.endpoint, delayed.run_at_ms
     FROM waiting CROSS JOIN LATERAL (
       SELECT run_at_ms FROM live_tasks
       WHERE deployment_id = $1 AND live_tasks.endpoint = waiting.endpoint
         AND status = ${STATUS.scheduled} AND run_at_ms <= $2
       ORDER BY run_at_ms LIMIT 1) AS delayed
   ) AS due GROUP BY endpoint`,
);

export async function oldestWaiting(
  session: Session,
  { deploymentId, nowMs }: Parameters<Storage["oldestWaiting"]>[0],
): Promise<OldestWaiting[]> {
  const rows = await session.query(OLDEST, deploymentId, nowMs);
  return rows.map((row) => ({ endpoint: String(row.endpoint), dueAtMs: Number(row.due_at_ms) }));
}
