/**
 * Leases of workers. They expire by the database's clock, so nodes with
 * different clocks agree. A statement that puts a task under a lease locks the
 * lease's row (FOR KEY SHARE). Renewing does not wait for that lock, but
 * deleting does: so a transaction that has deleted a lease sees every attempt
 * that was ever under it.
 */

import { NODE_LOST, NODES_LOST } from "../../tasks/failure.ts";
import { MAX_LOST_NODES, restartAfterLostNode } from "../../tasks/lost.ts";
import type { Task } from "../../tasks/task.ts";
import type { Storage } from "../storage.ts";
import { toAttempt } from "./attempts.ts";
import type { PostgresDatabase } from "./database.ts";
import { type Ending, endAttempts } from "./end-attempt.ts";
import { hasExpired, isHeld, type NodeSession } from "./node-session.ts";
import { STATUS } from "./schema.ts";
import { type PostgresRow, prepared, type Session, statement } from "./session.ts";

/** SQL for the time in milliseconds since 1970: `$1`, or the database's clock when that is null. */
export const NOW_MS = "coalesce($1::bigint, (extract(epoch FROM now()) * 1000)::bigint)";

/** Expired leases ended in one transaction. */
const MAX_RESCUED_LEASES = 100;

/** Maps a caller's time to the parameter `$1`; null selects the database's clock. */
export type LeaseClock = (nowMs: number) => number | null;

const OPEN = prepared(
  "open_lease",
  `INSERT INTO leases (lease_id, owner, expires_at_ms)
   VALUES ($2, CASE WHEN ${isHeld("$5::text")} THEN $5::text ELSE $3 END, ${NOW_MS} + $4)
   ON CONFLICT (lease_id) DO UPDATE SET expires_at_ms = excluded.expires_at_ms`,
);

/** How leases are timed, and who asks about them. */
export interface LeaseTime {
  readonly clock: LeaseClock;
  readonly session: NodeSession;
}

/** The owner is shown by its session, where it has one. */
export async function openLease(
  session: Session,
  time: LeaseTime,
  { leaseId, owner, nowMs, ttlMs }: Parameters<Storage["openLease"]>[0],
): Promise<void> {
  await session.query(OPEN, time.clock(nowMs), leaseId, owner, ttlMs, time.session.name);
}

const RENEW = prepared(
  "renew_leases",
  `UPDATE leases SET expires_at_ms = ${NOW_MS} + $3 WHERE lease_id = ANY ($2) RETURNING lease_id`,
);

export async function renewLeases(
  session: Session,
  clock: LeaseClock,
  { leaseIds, nowMs, ttlMs }: Parameters<Storage["renewLeases"]>[0],
): Promise<string[]> {
  const rows = await session.query(RENEW, clock(nowMs), leaseIds, ttlMs);
  const renewed = new Set(rows.map((row) => row.lease_id));
  return leaseIds.filter((leaseId) => renewed.has(leaseId));
}

const CLOSE = statement("DELETE FROM leases WHERE lease_id = $1");

export function closeLease(
  db: PostgresDatabase,
  { leaseId, nowMs }: Parameters<Storage["closeLease"]>[0],
): Promise<Task[]> {
  return db.transaction(async (session) => {
    await session.query(CLOSE, leaseId);
    return loseNodes(session, [leaseId], nowMs);
  });
}

const FIND_EXPIRED = prepared(
  "find_expired",
  `SELECT lease_id FROM leases
   WHERE ${hasExpired(NOW_MS, { name: "$2::text", minAgeMs: "$3::bigint" })}
   LIMIT ${MAX_RESCUED_LEASES}`,
);

/**
 * Checks the expiry again: a lease may have been renewed since, or be ended by
 * another node right now.
 */
const END_EXPIRED = statement(
  `DELETE FROM leases WHERE lease_id IN (
     SELECT lease_id FROM leases WHERE lease_id = ANY ($4)
       AND ${hasExpired(NOW_MS, { name: "$2::text", minAgeMs: "$3::bigint" })}
     FOR UPDATE SKIP LOCKED)
   RETURNING lease_id`,
);

export async function rescueExpired(
  db: PostgresDatabase,
  { clock, session: { name, minAgeMs } }: LeaseTime,
  { nowMs, all }: Parameters<Storage["rescueExpired"]>[0],
): Promise<Task[]> {
  const rescued: Task[] = [];
  const until = all ? Number.MAX_SAFE_INTEGER : clock(nowMs);
  for (;;) {
    const found = await db.query(FIND_EXPIRED, until, name, minAgeMs);
    if (found.length === 0) {
      return rescued;
    }
    const leaseIds = found.map((row) => row.lease_id);
    const ended = await db.transaction(async (session) => {
      const gone = await session.query(END_EXPIRED, until, name, minAgeMs, leaseIds);
      rescued.push(
        ...(await loseNodes(
          session,
          gone.map(({ lease_id }) => String(lease_id)),
          nowMs,
        )),
      );
      return gone.length;
    });
    if (ended === 0) {
      return rescued;
    }
  }
}

const UNDER_LEASES = prepared(
  "attempts_under_leases",
  `SELECT deployment_id, task_id, lease_id, attempt, lost_nodes FROM live_tasks
   WHERE lease_id = ANY ($1) AND status = ${STATUS.running}`,
);

/** Ends the attempts under leases that have ended. */
async function loseNodes(
  session: Session,
  leaseIds: readonly string[],
  nowMs: number,
): Promise<Task[]> {
  const rows = await session.query(UNDER_LEASES, leaseIds);
  const tasks = await endAttempts(
    session,
    rows.map((row) => lostWithNode(row, nowMs)),
  );
  return tasks.flatMap((task) => task ?? []);
}

function lostWithNode(row: PostgresRow, nowMs: number): Ending {
  const attempt = toAttempt(row);
  const lostNodes = Number(row.lost_nodes) + 1;
  if (lostNodes > MAX_LOST_NODES) {
    return { attempt, nowMs, end: { status: "failure", failure: NODES_LOST } };
  }
  const runAtMs = restartAfterLostNode({ ...attempt, lostNodes, nowMs });
  const later = runAtMs === undefined ? {} : { runAtMs };
  const end = { status: "queued", failed: false, failure: NODE_LOST, ...later } as const;
  return { attempt, nowMs, end, lostNode: true };
}
