import { isPaused } from "../sql/hosting/pauses.ts";
import type { Storage, Survey } from "../storage.ts";
import { type LeaseTime, NOW_MS } from "./leases.ts";
import { hasExpired } from "./node-session.ts";
import { STATUS } from "./schema.ts";
import { prepared, type Session } from "./session.ts";

/** Finds ready tasks and due delayed tasks of endpoints with queued tasks. */
const SURVEY = prepared(
  "survey",
  `WITH waiting AS (
     SELECT deployment_id, endpoint FROM (
       SELECT deployment_id, endpoint, queued FROM queue_counts WHERE deployment_id = ANY ($3)
       UNION ALL
       SELECT deployment_id, endpoint, queued FROM queue_count_deltas
       WHERE deployment_id = ANY ($3)
     ) AS counted WHERE NOT ${isPaused("counted.deployment_id", "counted.endpoint")}
     GROUP BY deployment_id, endpoint HAVING sum(queued) > 0)
   SELECT 'due' AS found, waiting.deployment_id, waiting.endpoint, 1 AS count
   FROM waiting CROSS JOIN LATERAL (
     (SELECT FROM live_tasks
      WHERE deployment_id = waiting.deployment_id AND live_tasks.endpoint = waiting.endpoint
        AND status = ${STATUS.ready} AND (start_by_ms IS NULL OR start_by_ms > $2)
      LIMIT 1)
     UNION ALL
     (SELECT FROM live_tasks
      WHERE deployment_id = waiting.deployment_id AND live_tasks.endpoint = waiting.endpoint
        AND status = ${STATUS.scheduled} AND run_at_ms <= $2
        AND (start_by_ms IS NULL OR start_by_ms > $2)
      LIMIT 1)
     LIMIT 1) AS due
   UNION ALL
   SELECT 'suspect', deployment_id, endpoint, count(*) FROM live_tasks
   WHERE suspect AND status = ${STATUS.ready} AND deployment_id = ANY ($3)
     AND (start_by_ms IS NULL OR start_by_ms > $2)
     AND NOT ${isPaused("live_tasks.deployment_id", "live_tasks.endpoint")}
   GROUP BY deployment_id, endpoint
   UNION ALL
   SELECT 'expired', NULL, NULL, NULL
   WHERE EXISTS (
     SELECT FROM leases WHERE ${hasExpired(NOW_MS, { name: "$4::text", minAgeMs: "$5::bigint" })})
   UNION ALL
   SELECT 'overdue', NULL, NULL, NULL
   WHERE EXISTS (
     SELECT FROM live_tasks WHERE status <= ${STATUS.ready} AND start_by_ms <= $2)
   UNION ALL
   SELECT 'schedule', deployment_id, NULL, min(next_at_ms) FROM schedules
   WHERE deployment_id = ANY ($3) AND next_at_ms IS NOT NULL AND next_at_ms <= $6
   GROUP BY deployment_id`,
);

export async function survey(
  session: Session,
  { clock, session: asking }: LeaseTime,
  { nowMs, deploymentIds, untilMs = nowMs }: Parameters<Storage["survey"]>[0],
): Promise<Survey> {
  const found = await session.query(
    SURVEY,
    clock(nowMs),
    nowMs,
    deploymentIds,
    asking.name,
    asking.minAgeMs,
    untilMs,
  );
  const endpoints = (kind: string) =>
    found
      .filter((row) => row.found === kind)
      .map((row) => ({
        deploymentId: String(row.deployment_id),
        endpoint: String(row.endpoint),
        count: Number(row.count),
      }));
  return {
    expiredLeases: found.some((row) => row.found === "expired"),
    overdueTasks: found.some((row) => row.found === "overdue"),
    due: endpoints("due").map(({ deploymentId, endpoint }) => ({ deploymentId, endpoint })),
    suspects: endpoints("suspect"),
    schedules: endpoints("schedule").map(({ deploymentId, count }) => ({
      deploymentId,
      nextAtMs: count,
    })),
  };
}
