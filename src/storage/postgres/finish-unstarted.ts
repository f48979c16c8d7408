import { countedAs } from "./counts.ts";
import { TASK_COLUMNS } from "./rows.ts";
import { STATUS } from "./schema.ts";
import { toldOf } from "./webhooks.ts";

/**
 * SQL that ends tasks which have not started: moves them from `live_tasks` to
 * `finished_tasks`. `$1` is the time. A task that runs or has ended is not
 * among them.
 */
export function finishUnstarted(parameters: {
  readonly which: string;
  readonly status: number;
  readonly failure: string;
}): string {
  const { which, status, failure } = parameters;
  return `WITH gone AS (
      DELETE FROM live_tasks WHERE status < ${STATUS.running} AND ${which} RETURNING *
    ), told AS (${toldOf({ status: String(status), finishedAt: "$1" })}
    ), counted AS (${countedAs("gone", "-")})
    INSERT INTO finished_tasks (deployment_id, task_id, endpoint, status, created_at_ms,
      started_at_ms, finished_at_ms, expires_at_ms, attempt, failed_attempts, started_sequence,
      last_sequence, progress, retry_of, idempotency_key, failure, arguments, priority, run_at_ms,
      start_by_ms, trace, returned, arguments_preview, webhook, key, tags)
    SELECT deployment_id, task_id, endpoint, ${status}, created_at_ms,
      started_at_ms, $1, $1 + retention_ms, attempt, failed_attempts, 0,
      last_sequence + 1, progress, retry_of, idempotency_key, ${failure}, arguments, priority,
      run_at_ms, start_by_ms, trace, returned, arguments_preview, webhook, key, tags
    FROM gone
    RETURNING ${TASK_COLUMNS}`;
}
