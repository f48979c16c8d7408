/**
 * Claiming: moves due tasks from the queue to leases, and finds delayed tasks
 * that have become due.
 */
import type { DueCount } from "../queues.ts";
import { isPaused } from "../sql/hosting/pauses.ts";
import {
  type ClaimedTask,
  MAX_SUSPECTS_LOOKED_AT,
  MAX_UNKEYED_LOOKED_AT,
  type Storage,
} from "../storage.ts";
import { readPayload } from "./payloads.ts";
import { columnsOf, LIVE_COLUMNS, toTask } from "./rows.ts";
import { STATUS } from "./schema.ts";
import { type BoundStatement, type PostgresRow, prepared, type Session } from "./session.ts";

/** Delayed tasks of one endpoint that one claim promotes; the next claim promotes more. */
export const MAX_PROMOTED_TASKS = 1_000;

/** Skips tasks that can no longer start, because they would use up the bound. */
const promoteOf = (name: string, key: string) =>
  prepared(
    name,
    `WITH due AS MATERIALIZED (
     SELECT delayed.* FROM unnest($3::text[]) AS claimed (endpoint)
     CROSS JOIN LATERAL (
       SELECT deployment_id, task_id FROM live_tasks
       WHERE deployment_id = $1 AND live_tasks.endpoint = claimed.endpoint
         AND status = ${STATUS.scheduled} AND run_at_ms <= $2
         AND (start_by_ms IS NULL OR start_by_ms > $2)
       ORDER BY run_at_ms LIMIT ${MAX_PROMOTED_TASKS} FOR UPDATE SKIP LOCKED) AS delayed)
   UPDATE live_tasks SET status = ${STATUS.ready}${key} FROM due
   WHERE live_tasks.deployment_id = due.deployment_id AND live_tasks.task_id = due.task_id`,
  );

/** SQL: a task without a key gets the empty one. */
const GIVEN_KEY = ", key = coalesce(live_tasks.key, '')";

const PROMOTE = promoteOf("promote_tasks", "");
const PROMOTE_BY_KEY = promoteOf("promote_tasks_by_key", GIVEN_KEY);

/**
 * Deals the tasks of `picked` out in the order of the claims, of `given`. The leases are locked against
 * closing, but only when there is a task to claim: a look into an empty queue writes nothing.
 */
const dealt = (key: string) => `open AS MATERIALIZED (
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
       last_sequence = last_sequence + 1, progress = NULL, abort_requested = false${key}
     FROM dealt
     WHERE live_tasks.deployment_id = dealt.deployment_id AND live_tasks.task_id = dealt.task_id
     RETURNING dealt.position, dealt.place, arguments,
       ${columnsOf("live_tasks", LIVE_COLUMNS)}
   ), counted AS (
     INSERT INTO queue_count_deltas (deployment_id, endpoint, queued, running)
     SELECT $1, endpoint, -count(*), count(*) FROM claimed GROUP BY endpoint
   )`;

const GIVEN = `given AS MATERIALIZED (
     SELECT * FROM json_to_recordset($3) AS given (position integer, endpoint text,
       lease_id text, wanted integer)
   )`;

/** Picks for each endpoint the total number that its claims ask for. */
const claimOf = (name: string, chosen: "suspect" | "NOT suspect") =>
  prepared(
    name,
    `WITH ${GIVEN}, picked AS MATERIALIZED (
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
   ), ${dealt("")}
   SELECT * FROM claimed`,
  );

const CLAIM = claimOf("claim_tasks", "NOT suspect");
/** Nearly always there are none: they stand in an index of their own. */
const CLAIM_SUSPECTS = claimOf("claim_suspects", "suspect");

/*
 * Endpoints that callers share by their keys are claimed one by one. Nothing is counted: the tasks of
 * a key that run are its use, and an index has them. So an attempt that ends in whatever way, also
 * with its lease, gives its room back by ending. A claim locks the endpoint's row of `key_turns`
 * before it looks, so that it sees what all others have claimed. For these rows and for leases claims
 * wait, and for tasks that are locked never: so they wait for each other in no circle.
 */

const ADD_TURN = prepared(
  "add_key_turn",
  `INSERT INTO key_turns (deployment_id, endpoint, key) VALUES ($1, $2, '') ON CONFLICT DO NOTHING`,
);

const LOCK_TURN = prepared(
  "lock_key_turn",
  "SELECT FROM key_turns WHERE deployment_id = $1 AND endpoint = $2 FOR UPDATE",
);

/** Those of the first tasks of a queue that have no key get the empty one. */
const GIVE_KEYS = prepared(
  "give_keys",
  `WITH first AS MATERIALIZED (
     SELECT deployment_id, task_id, key FROM live_tasks
     WHERE deployment_id = $1 AND endpoint = $2 AND status = ${STATUS.ready}
     ORDER BY priority DESC, run_at_ms, task_id LIMIT ${MAX_UNKEYED_LOOKED_AT}
   ), unkeyed AS MATERIALIZED (
     SELECT own.deployment_id, own.task_id FROM first JOIN live_tasks AS own
       ON own.deployment_id = first.deployment_id AND own.task_id = first.task_id
     WHERE first.key IS NULL AND own.key IS NULL FOR UPDATE OF own SKIP LOCKED)
   UPDATE live_tasks SET key = '' FROM unkeyed
   WHERE live_tasks.deployment_id = unkeyed.deployment_id AND live_tasks.task_id = unkeyed.task_id`,
);

/** SQL: how many more tasks of a key may run. */
const roomOf = (key: string) => `CASE WHEN $5::integer IS NULL THEN 2147483647 ELSE $5 - (
    SELECT count(*) FROM (
      SELECT FROM live_tasks AS other WHERE other.deployment_id = $1 AND other.endpoint = $4
        AND other.status = ${STATUS.running} AND other.key = ${key} LIMIT $5) AS running) END`;

const READY_OF_ENDPOINT = `deployment_id = $1 AND endpoint = $4 AND status = ${STATUS.ready}
  AND (start_by_ms IS NULL OR start_by_ms > $2)`;

/** SQL: a key of the endpoint that has tasks waiting, the first one that fits. */
const firstKey = (lap: number, condition: string) => `(
    SELECT other.key, ${lap} AS lap FROM live_tasks AS other
    WHERE other.deployment_id = $1 AND other.endpoint = $4 AND other.status = ${STATUS.ready}
      AND ${condition} ORDER BY other.key LIMIT 1)`;

/** SQL: the key after another one, and from the last one on those up to the key of the last claim. */
const nextKey = (key: string, lap: string) => `(
    ${firstKey(0, `${lap} = 0 AND other.key > ${key}`)}
    UNION ALL ${firstKey(1, `${lap} = 0 AND other.key <= (SELECT key FROM turn)`)}
    UNION ALL ${firstKey(1, `${lap} = 1 AND other.key > ${key} AND other.key <= (SELECT key FROM turn)`)}
    ORDER BY lap LIMIT 1)`;

/** SQL: the room of a key that has a task to start; others have none. */
const usableRoom = (key: string) => `CASE WHEN EXISTS (
    SELECT FROM live_tasks AS own WHERE ${READY_OF_ENDPOINT} AND own.key = ${key} AND NOT suspect)
  THEN ${roomOf(key)} ELSE 0 END`;

const WANTS = `wants AS MATERIALIZED (
     SELECT coalesce(sum(wanted), 0)::integer AS wanted FROM given WHERE NOT ${isPaused("$1", "$4")}
   )`;

/**
 * Walks from key to key, from the one after the last that was claimed, until as many have room as
 * tasks are wanted. Then picks one task of each, and then the next one of each. Those without room
 * that it passes have tasks that run.
 */
const CLAIM_BY_KEY = prepared(
  "claim_by_key",
  `WITH RECURSIVE ${GIVEN}, ${WANTS}, turn AS MATERIALIZED (
     SELECT key FROM key_turns WHERE deployment_id = $1 AND endpoint = $4
   ), walk (key, lap, room, found) AS (
     SELECT next.key, next.lap, own.room, (own.room > 0)::integer
     FROM turn CROSS JOIN wants CROSS JOIN LATERAL ${nextKey("turn.key", "0")} AS next
     CROSS JOIN LATERAL (SELECT ${usableRoom("next.key")} AS room) AS own
     WHERE wants.wanted > 0
     UNION ALL
     SELECT next.key, next.lap, own.room, walk.found + (own.room > 0)::integer
     FROM walk CROSS JOIN wants CROSS JOIN LATERAL ${nextKey("walk.key", "walk.lap")} AS next
     CROSS JOIN LATERAL (SELECT ${usableRoom("next.key")} AS room) AS own
     WHERE walk.found < wants.wanted
   ), free AS MATERIALIZED (
     SELECT key, room, row_number() OVER (ORDER BY lap, key) AS turn FROM walk WHERE room > 0
   ), ready AS MATERIALIZED (
     SELECT free.key, free.turn, own.*, row_number() OVER (
       PARTITION BY free.key ORDER BY priority DESC, run_at_ms, task_id) AS nth
     FROM free CROSS JOIN wants CROSS JOIN LATERAL (
       SELECT deployment_id, task_id, priority, run_at_ms FROM live_tasks
       WHERE ${READY_OF_ENDPOINT} AND live_tasks.key = free.key AND NOT suspect
       ORDER BY priority DESC, run_at_ms, task_id
       LIMIT CASE WHEN (SELECT count(*) FROM free) >= wants.wanted THEN 1
         ELSE least(free.room, wants.wanted) END
       FOR UPDATE SKIP LOCKED) AS own
   ), picked AS MATERIALIZED (
     SELECT $4 AS endpoint, deployment_id, task_id, key,
       row_number() OVER (ORDER BY nth, turn) AS place
     FROM ready ORDER BY nth, turn LIMIT (SELECT wanted FROM wants)
   ), ${dealt("")}, turned AS (
     UPDATE key_turns SET key = last.key
     FROM (SELECT claimed.key FROM claimed ORDER BY position DESC, place DESC LIMIT 1) AS last
     WHERE key_turns.deployment_id = $1 AND key_turns.endpoint = $4
   )
   SELECT * FROM claimed`,
);

/** Claims suspects in the order of the queue, within the room of their keys. */
const CLAIM_SUSPECTS_BY_KEY = prepared(
  "claim_suspects_by_key",
  `WITH ${GIVEN}, ${WANTS}, waiting AS MATERIALIZED (
     SELECT deployment_id, task_id, priority, run_at_ms, coalesce(key, '') AS key FROM live_tasks
     WHERE ${READY_OF_ENDPOINT} AND suspect
     ORDER BY priority DESC, run_at_ms, task_id LIMIT ${MAX_SUSPECTS_LOOKED_AT}
     FOR UPDATE SKIP LOCKED
   ), ranked AS MATERIALIZED (
     SELECT *, row_number() OVER (
       PARTITION BY key ORDER BY priority DESC, run_at_ms, task_id) AS nth FROM waiting
   ), picked AS MATERIALIZED (
     SELECT $4 AS endpoint, deployment_id, task_id,
       row_number() OVER (ORDER BY priority DESC, run_at_ms, task_id) AS place
     FROM ranked WHERE nth <= ${roomOf("ranked.key")}
     ORDER BY priority DESC, run_at_ms, task_id LIMIT (SELECT wanted FROM wants)
   ), ${dealt(GIVEN_KEY)}
   SELECT * FROM claimed`,
);

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
  const byKey = new Map(claims.flatMap((one) => (one.byKey ? [[one.endpoint, one.byKey]] : [])));
  const plain = given.filter(({ endpoint }) => !byKey.has(endpoint));
  const asked: BoundStatement[] = [];
  if (plain.length > 0 || byKey.size === 0) {
    const endpoints = [...new Set(plain.map(({ endpoint }) => endpoint))];
    asked.push(
      [PROMOTE, deploymentId, nowMs, endpoints],
      [suspects ? CLAIM_SUSPECTS : CLAIM, deploymentId, nowMs, JSON.stringify(plain)],
    );
  }
  // All claims lock the rows in the same order.
  for (const [endpoint, { concurrency, unkeyed }] of [...byKey].sort(byName)) {
    const own = JSON.stringify(given.filter((one) => one.endpoint === endpoint));
    const limit = concurrency ?? null;
    asked.push(
      [PROMOTE_BY_KEY, deploymentId, nowMs, [endpoint]],
      [ADD_TURN, deploymentId, endpoint],
      [LOCK_TURN, deploymentId, endpoint],
      ...(unkeyed ? [[GIVE_KEYS, deploymentId, endpoint] as const] : []),
      [suspects ? CLAIM_SUSPECTS_BY_KEY : CLAIM_BY_KEY, deploymentId, nowMs, own, endpoint, limit],
    );
  }
  const answers = await session.together(...asked);
  const rows = answers.flat().filter(({ task_id: taskId }) => taskId !== undefined);
  return Promise.all(rows.sort(inOrder).map((row) => toClaimed(session, row)));
}

function byName([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number {
  return one < other ? -1 : 1;
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
