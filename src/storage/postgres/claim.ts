/**
 * Claiming: moves due tasks from the queue to leases, and finds delayed tasks
 * that have become due.
 */
import type { ClaimByKey, LaterClaim } from "../claims-by-key.ts";
import type { DueCount } from "../queues.ts";
import { isPaused } from "../sql/hosting/pauses.ts";
import type { Claimed, ClaimedTask, Storage } from "../storage.ts";
import { dealt, GIVEN, GIVEN_KEY } from "./dealing.ts";
import {
  CLAIM_BY_KEY,
  CLAIM_BY_RATE,
  CLAIM_OF_KEYS,
  CLAIM_OF_KEYS_BY_RATE,
  CLAIM_SUSPECTS_BY_KEY,
  CLAIM_SUSPECTS_BY_RATE,
  GIVE_KEYS,
  LOCK_TURN,
  NEXT_SUSPECT,
  NEXT_SUSPECT_BY_RATE,
  TAKE_UNBEGUN,
} from "./keys.ts";
import type { LeaseClock } from "./leases.ts";
import { readPayload } from "./payloads.ts";
import { toTask } from "./rows.ts";
import { STATUS } from "./schema.ts";
import { type BoundStatement, type PostgresRow, prepared, type Session } from "./session.ts";
import {
  CLAIM_BY_TIME,
  CLAIM_BY_TIME_AND_RATE,
  CLAIM_OF_KEYS_BY_TIME,
  CLAIM_OF_KEYS_BY_TIME_AND_RATE,
  CLAIM_SUSPECTS_BY_TIME,
  CLAIM_SUSPECTS_BY_TIME_AND_RATE,
} from "./times.ts";

/** Delayed tasks of one endpoint that one claim promotes; the next claim promotes more. */
export const MAX_PROMOTED_TASKS = 1_000;

/** Skips tasks that can no longer start, because they would use up the bound. */
const promoteOf = (name: string, key: string, also = "") =>
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
   WHERE live_tasks.deployment_id = due.deployment_id AND live_tasks.task_id = due.task_id${also}`,
  );

const PROMOTE = promoteOf("promote_tasks", "");
const PROMOTE_BY_KEY = promoteOf(
  "promote_tasks_by_key",
  GIVEN_KEY,
  " RETURNING live_tasks.endpoint AS due_endpoint, live_tasks.key AS due_key",
);

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

/** `clock` times the starts of keys. */
export async function claimTasks(
  session: Session,
  clock: LeaseClock,
  { deploymentId, nowMs, claims, suspects = false }: Parameters<Storage["claimTasks"]>[0],
): Promise<Claimed> {
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
  for (const [endpoint, each] of [...byKey].sort(byName)) {
    const own = JSON.stringify(given.filter((one) => one.endpoint === endpoint));
    const { concurrency = null, rate, unkeyed, keys } = each;
    const limits = [
      concurrency,
      ...(rate ? [rate.count, rate.periodMs, clock(nowMs)] : []),
      ...(keys && !suspects ? [keys] : []),
    ];
    asked.push(
      [PROMOTE_BY_KEY, deploymentId, nowMs, [endpoint]],
      [LOCK_TURN, deploymentId, endpoint],
      ...(unkeyed ? [[GIVE_KEYS, deploymentId, endpoint] as const] : []),
      ...(rate ? [[TAKE_UNBEGUN, deploymentId, endpoint] as const] : []),
      [byKeyOf(each, suspects), deploymentId, nowMs, own, endpoint, ...limits],
    );
  }
  const rows = (await session.together(...asked)).flat();
  const claimed = rows.filter(({ task_id: taskId }) => (taskId ?? null) !== null).sort(inOrder);
  const due = Map.groupBy(
    rows.filter(({ due_key: key }) => (key ?? null) !== null),
    ({ due_endpoint: endpoint }) => String(endpoint),
  );
  return {
    tasks: await Promise.all(claimed.map((row) => toClaimed(session, row))),
    later: rows.flatMap(toLater),
    ...(due.size > 0 && {
      due: Array.from(due, ([endpoint, each]) => ({
        endpoint,
        keys: [...new Set(each.map(({ due_key: key }) => String(key)))],
      })),
    }),
  };
}

/** Statements of claims, without a rate and with one: in turn, of named keys, and of suspects. */
const BY_KEY = {
  turns: [CLAIM_BY_KEY, CLAIM_BY_RATE],
  keys: [CLAIM_OF_KEYS, CLAIM_OF_KEYS_BY_RATE],
  suspects: [CLAIM_SUSPECTS_BY_KEY, CLAIM_SUSPECTS_BY_RATE],
} as const;
const BY_TIME = {
  turns: [CLAIM_BY_TIME, CLAIM_BY_TIME_AND_RATE],
  keys: [CLAIM_OF_KEYS_BY_TIME, CLAIM_OF_KEYS_BY_TIME_AND_RATE],
  suspects: [CLAIM_SUSPECTS_BY_TIME, CLAIM_SUSPECTS_BY_TIME_AND_RATE],
} as const;

function byKeyOf({ rate, fair, keys }: ClaimByKey, suspects: boolean) {
  const asked = suspects ? "suspects" : keys ? "keys" : "turns";
  const [plain, rated] = (fair === "seconds" ? BY_TIME : BY_KEY)[asked];
  return rate ? rated : plain;
}

function toLater({ later_endpoint: endpoint, in_ms: inMs, cut }: PostgresRow): LaterClaim[] {
  const isTimed = (inMs ?? null) !== null;
  const isCut = cut === "on" || cut === "around";
  return isTimed || isCut
    ? [
        {
          endpoint: String(endpoint),
          ...(isTimed && { inMs: Number(inMs) }),
          ...(isCut && { cut }),
        },
      ]
    : [];
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

/** In how many milliseconds the first suspect may start, by the limits of its key. */
export async function nextSuspect(
  session: Session,
  clock: LeaseClock,
  { deploymentId, endpoint, nowMs, byKey }: Parameters<Storage["nextSuspect"]>[0],
): Promise<number | undefined> {
  const { concurrency = null, rate } = byKey;
  const of = [deploymentId, nowMs, 1, endpoint, concurrency] as const;
  const [row] = rate
    ? await session.query(NEXT_SUSPECT_BY_RATE, ...of, rate.count, rate.periodMs, clock(nowMs))
    : await session.query(NEXT_SUSPECT, ...of);
  if (Number(row?.keys ?? 0) === 0) {
    return undefined;
  }
  return Number(row?.in_ms ?? Number.POSITIVE_INFINITY);
}
