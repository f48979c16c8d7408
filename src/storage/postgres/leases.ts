/**
 * Leases of workers. They expire by the database's clock, so nodes with
 * different clocks agree. A statement that puts a task under a lease locks the
 * lease's row (FOR KEY SHARE). Renewing does not wait for that lock, but
 * deleting does: so a transaction that has deleted a lease sees every attempt
 * that was ever under it.
 */

import { NODE_LOST } from "../../tasks/failure.ts";
import type { Task } from "../../tasks/task.ts";
import type { LeasedTask } from "../leases.ts";
import type { Storage } from "../storage.ts";
import { toAttempt } from "./attempts.ts";
import type { PostgresDatabase } from "./database.ts";
import { endAttempts } from "./end-attempt.ts";
import { hasExpired, isHeld, type NodeSession } from "./node-session.ts";
import { LIVE_COLUMNS, toTask } from "./rows.ts";
import { STATUS } from "./schema.ts";
import { prepared, type Session, statement } from "./session.ts";

/** SQL for the time in milliseconds since 1970: `$1`, or the database's clock when that is null. */
export const NOW_MS = "coalesce($1::bigint, (extract(epoch FROM now()) * 1000)::bigint)";

/** Expired leases ended in one transaction. */
const MAX_RESCUED_LEASES = 100;

/** Maps a caller's time to the parameter `$1`; null selects the database's clock. */
export type LeaseClock = (nowMs: number) => number | null;

const OPEN = prepared(
  "open_lease",
  `INSERT INTO leases (lease_id, owner, expires_at_ms, session)
   VALUES ($2, CASE WHEN ${isHeld("$5::text")} THEN $5::text ELSE $3 END, ${NOW_MS} + $4, $6)
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
  { leaseId, owner, nowMs, ttlMs, session: secret }: Parameters<Storage["openLease"]>[0],
): Promise<void> {
  // One with a session of its own outlives the node's.
  const ofNode = secret === undefined ? time.session.name : null;
  await session.query(OPEN, time.clock(nowMs), leaseId, owner, ttlMs, ofNode, secret ?? null);
}

const END_ADOPTED = statement(
  "DELETE FROM leases WHERE lease_id = $1 AND session = $2 RETURNING 1",
);

const MOVE_ATTEMPTS = prepared(
  "move_attempts",
  `UPDATE live_tasks SET lease_id = $2 WHERE lease_id = $1 AND status = ${STATUS.running}
   RETURNING ${LIVE_COLUMNS}`,
);

export function adoptLease(
  db: PostgresDatabase,
  time: LeaseTime,
  adopted: Parameters<Storage["adoptLease"]>[0],
): Promise<LeasedTask[] | undefined> {
  const { leaseId, session: secret, newLeaseId, newSession, ...opened } = adopted;
  return db.transaction(async (session) => {
    const ended = await session.query(END_ADOPTED, leaseId, secret);
    if (ended.length === 0) {
      return undefined;
    }
    await openLease(session, time, { ...opened, leaseId: newLeaseId, session: newSession });
    const rows = await session.query(MOVE_ATTEMPTS, leaseId, newLeaseId);
    return rows.map((row) => ({ task: toTask(row), leaseId: newLeaseId }));
  });
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

/** SQL: the lease is over at the time in `$1`, or, with `$4`, because its node has ended. */
const IS_OVER = `(${hasExpired(NOW_MS, { name: "$2::text", minAgeMs: "$3::bigint" })}
  OR ($4::boolean AND session IS NULL))`;

const FIND_EXPIRED = prepared(
  "find_expired",
  `SELECT lease_id FROM leases WHERE ${IS_OVER} LIMIT ${MAX_RESCUED_LEASES}`,
);

/**
 * Checks the expiry again: a lease may have been renewed since, or be ended by
 * another node right now.
 */
const END_EXPIRED = statement(
  `DELETE FROM leases WHERE lease_id IN (
     SELECT lease_id FROM leases WHERE lease_id = ANY ($5) AND ${IS_OVER}
     FOR UPDATE SKIP LOCKED)
   RETURNING lease_id`,
);

export async function rescueExpired(
  db: PostgresDatabase,
  { clock, session: { name, minAgeMs } }: LeaseTime,
  { nowMs, all }: Parameters<Storage["rescueExpired"]>[0],
): Promise<Task[]> {
  const rescued: Task[] = [];
  const about = [clock(nowMs), name, minAgeMs, all ?? false] as const;
  for (;;) {
    const found = await db.query(FIND_EXPIRED, ...about);
    if (found.length === 0) {
      return rescued;
    }
    const leaseIds = found.map((row) => row.lease_id);
    const ended = await db.transaction(async (session) => {
      const gone = await session.query(END_EXPIRED, ...about, leaseIds);
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
  `SELECT deployment_id, task_id, lease_id, attempt FROM live_tasks
   WHERE lease_id = ANY ($1) AND status = ${STATUS.running}`,
);

const LOST = { status: "node_lost", failure: NODE_LOST } as const;

/** Ends the attempts under leases that have ended. */
async function loseNodes(
  session: Session,
  leaseIds: readonly string[],
  nowMs: number,
): Promise<Task[]> {
  const rows = await session.query(UNDER_LEASES, leaseIds);
  const tasks = await endAttempts(
    session,
    rows.map((row) => ({ attempt: toAttempt(row), nowMs, end: LOST })),
  );
  return tasks.flatMap((task) => task ?? []);
}
