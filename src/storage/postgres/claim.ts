/**
 * Claiming: moves due tasks from the queue to leases, and finds delayed tasks
 * that have become due.
 */
import type { DueCount } from "../queues.ts";
import { isPaused } from "../sql/hosting/pauses.ts";
import type { ClaimedTask, Storage } from "../storage.ts";
import { readPayload } from "./payloads.ts";
import { columnsOf, LIVE_COLUMNS, toTask } from "./rows.ts";
import { STATUS } from "./schema.ts";
import { type PostgresRow, prepared, type Session } from "./session.ts";

/** Delayed tasks of one endpoint that one claim promotes; the next claim promotes more. */
export const MAX_PROMOTED_TASKS = 1_000;

/** Skips tasks that can no longer start, because they would use up the bound. */
const PROMOTE = prepared(
  "promote_tasks",
  `WITH due AS MATERIALIZED (
     SELECT delayed.* FROM unnest($3::text[]) AS claimed (endpoint)
     CROSS JOIN LATERAL (
       SELECT deployment_id, task_id FROM live_tasks
       WHERE deployment_id = $1 AND live_tasks.endpoint = claimed.endpoint
         AND status = ${STATUS.scheduled} AND run_at_ms <= $2
         AND (start_by_ms IS NULL OR start_by_ms > $2)
       ORDER BY run_at_ms LIMIT ${MAX_PROMOTED_TASKS} FOR UPDATE SKIP LOCKED) AS delayed)
   UPDATE live_tasks SET status = ${STATUS.ready} FROM due
   WHERE live_tasks.deployment_id = due.deployment_id AND live_tasks.task_id = due.task_id`,
);

/**
 * Picks for each endpoint the total number that its claims ask for, and deals
 * the tasks out in the order of the claims. The leases are locked against
 * closing, but only when there is a task to claim: a look into an empty queue
 * writes nothing.
 */
const claimOf = (name: string, chosen: "suspect" | "NOT suspect") =>
  prepared(
    name,
    `WITH given AS MATERIALIZED (
     SELECT * FROM json_to_recordset($3) AS given (position integer, endpoint text,
       lease_id text, wanted integer)
   ), picked AS MATERIALIZED (
     SELECT wants.endpoint, ready.*, row_number() OVER (
       PARTITION BY wants.endpoint ORDER BY priority DESC, run_at_ms, task_id) AS place
     FROM (SELECT endpoint, sum(wanted) AS wanted FROM given
       WHERE NOT ${isPaused("$1", "given.endpoint")} GROUP BY endpoint) AS wants
     CROSS JOIN LATERAL (
       SELECT deployment_id, task_id, priority, run_at_ms FROM live_tasks
       WHERE deployment_id = $1 AND live_tasks.endpoint = wants.endpoint
         AND status = ${STATUS.ready} AND ${chosen}
         AND (start_by_ms IS NULL OR start_by_ms > $2)
       ORDER BY priority DESC, run_at_ms, task_id
       LIMIT wants.wanted FOR UPDATE SKIP LOCKED) AS ready
   ), open AS MATERIALIZED (
     SELECT lease_id FROM leases
     WHERE lease_id IN (SELECT lease_id FROM given) AND EXISTS (SELECT FROM picked)
     FOR KEY SHARE
   ), slots AS MATERIALIZED (
     SELECT given.*, sum(wanted) OVER (PARTITION BY endpoint ORDER BY position) AS upto
     FROM given JOIN open USING (lease_id)
   ), dealt AS MATERIALIZED (
     SELECT picked.deployment_id, picked.task_id, picked.place, slots.position, slots.lease_id
     FROM picked JOIN slots ON picked.endpoint = slots.endpoint
       AND picked.place > slots.upto - slots.wanted AND picked.place <= slots.upto
   ), claimed AS (
     UPDATE live_tasks SET status = ${STATUS.running}, attempt = attempt + 1, started_at_ms = $2,
       lease_id = dealt.lease_id, started_sequence = last_sequence + 1,
       last_sequence = last_sequence + 1, progress = NULL, abort_requested = false
     FROM dealt
     WHERE live_tasks.deployment_id = dealt.deployment_id AND live_tasks.task_id = dealt.task_id
     RETURNING dealt.position, dealt.place, arguments,
       ${columnsOf("live_tasks", LIVE_COLUMNS)}
   ), counted AS (
     INSERT INTO queue_count_deltas (deployment_id, endpoint, queued, running)
     SELECT $1, endpoint, -count(*), count(*) FROM claimed GROUP BY endpoint
   )
   SELECT * FROM claimed`,
  );

const CLAIM = claimOf("claim_tasks", "NOT suspect");
/** Nearly always there are none: they stand in an index of their own. */
const CLAIM_SUSPECTS = claimOf("claim_suspects", "suspect");

export async function claimTasks(
  session: Session,
  { deploymentId, nowMs, claims, suspects = false }: Parameters<Storage["claimTasks"]>[0],
): Promise<ClaimedTask[]> {
  const given = claims.map(({ endpoint, leaseId, limit }, position) => ({
    position,
    endpoint,
    lease_id: leaseId,
    wanted: limit,
  }));
  const endpoints = [...new Set(claims.map(({ endpoint }) => endpoint))];
  const [, rows = []] = await session.together(
    [PROMOTE, deploymentId, nowMs, endpoints],
    [suspects ? CLAIM_SUSPECTS : CLAIM, deploymentId, nowMs, JSON.stringify(given)],
  );
  return Promise.all([...rows].sort(inOrder).map((row) => toClaimed(session, row)));
}

function inOrder(a: PostgresRow, b: PostgresRow): number {
  return Number(a.position) - Number(b.position) || Number(a.place) - Number(b.place);
}

async function toClaimed(session: Session, row: PostgresRow): Promise<ClaimedTask> {
  const task = toTask(row);
  const payload = await readPayload(session, { ...task, side: "arguments" }, row.arguments);
  if (payload === undefined) {
    throw new Error(`task ${task.taskId} has lost its arguments`);
  }
  return { task, leaseId: String(row.lease_id), arguments: payload };
}

const DUE = prepared(
  "count_due",
  `WITH waiting AS (
     SELECT endpoint FROM (
       SELECT endpoint, queued FROM queue_counts WHERE deployment_id = $1
       UNION ALL
       SELECT endpoint, queued FROM queue_count_deltas WHERE deployment_id = $1
     ) AS counted WHERE NOT ${isPaused("$1", "counted.endpoint")}
     GROUP BY endpoint HAVING sum(queued) > 0)
   SELECT endpoint, least($3, (
       SELECT count(*) FROM (
         SELECT FROM live_tasks
         WHERE deployment_id = $1 AND live_tasks.endpoint = waiting.endpoint
           AND status = ${STATUS.ready} AND (start_by_ms IS NULL OR start_by_ms > $2)
         LIMIT $3) AS ready) + (
       SELECT count(*) FROM (
         SELECT FROM live_tasks
         WHERE deployment_id = $1 AND live_tasks.endpoint = waiting.endpoint
           AND status = ${STATUS.scheduled} AND run_at_ms <= $2
           AND (start_by_ms IS NULL OR start_by_ms > $2)
         LIMIT $3) AS scheduled)) AS due
   FROM waiting ORDER BY endpoint`,
);

export async function countDue(
  session: Session,
  { deploymentId, nowMs, limit }: Parameters<Storage["countDue"]>[0],
): Promise<DueCount[]> {
  const rows = await session.query(DUE, deploymentId, nowMs, limit);
  return rows
    .map(({ endpoint, due }) => ({ endpoint: String(endpoint), due: Number(due) }))
    .filter(({ due }) => due > 0);
}

const NEXT = prepared(
  "next_run_at",
  `SELECT run_at_ms FROM live_tasks
   WHERE deployment_id = $1 AND status = ${STATUS.scheduled} AND run_at_ms > $2
   ORDER BY run_at_ms LIMIT 1`,
);

export async function nextRunAt(
  session: Session,
  { deploymentId, nowMs }: Parameters<Storage["nextRunAt"]>[0],
): Promise<number | undefined> {
  const [row] = await session.query(NEXT, deploymentId, nowMs);
  return row && Number(row.run_at_ms);
}
