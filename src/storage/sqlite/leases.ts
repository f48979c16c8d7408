/** Leases of workers: open, renew, adopt, close, and rescue of expired ones. */
import type { Task } from "../../tasks/task.ts";
import type { LeasedTask } from "../leases.ts";
import type { Storage } from "../storage.ts";
import { attemptsUnder } from "./attempts.ts";
import type { SqliteDatabase } from "./database.ts";
import { loseNode } from "./end-attempt.ts";
import { readTask } from "./read.ts";
import { STATUS } from "./schema.ts";

export function openLease(
  db: SqliteDatabase,
  { leaseId, owner, nowMs, ttlMs, session }: Parameters<Storage["openLease"]>[0],
): void {
  db.openLeases.clear();
  db.run(
    `INSERT INTO leases (lease_id, owner, expires_at_ms, session) VALUES (?1, ?2, ?3, ?4)
     ON CONFLICT DO UPDATE SET expires_at_ms = ?3`,
    leaseId,
    owner,
    nowMs + ttlMs,
    session ?? null,
  );
}

export function adoptLease(
  db: SqliteDatabase,
  adopted: Parameters<Storage["adoptLease"]>[0],
): LeasedTask[] | undefined {
  const { leaseId, session, newLeaseId, newSession, ...opened } = adopted;
  const ended = "DELETE FROM leases WHERE lease_id = ? AND session = ?";
  if (db.run(ended, leaseId, session) === 0) {
    return undefined;
  }
  openLease(db, { ...opened, leaseId: newLeaseId, session: newSession });
  const attempts = attemptsUnder(db, [leaseId], "");
  db.run(
    `UPDATE tasks SET lease_id = ? WHERE lease_id = ? AND status = ${STATUS.running}`,
    newLeaseId,
    leaseId,
  );
  return attempts.flatMap((attempt) => {
    db.live.take(attempt);
    const task = readTask(db, attempt);
    return task === undefined ? [] : [{ task, leaseId: newLeaseId }];
  });
}

export function renewLeases(
  db: SqliteDatabase,
  { leaseIds, nowMs, ttlMs }: Parameters<Storage["renewLeases"]>[0],
): string[] {
  return leaseIds.filter(
    (leaseId) =>
      db.run("UPDATE leases SET expires_at_ms = ? WHERE lease_id = ?", nowMs + ttlMs, leaseId) > 0,
  );
}

export function closeLease(
  db: SqliteDatabase,
  { leaseId, nowMs }: Parameters<Storage["closeLease"]>[0],
): Task[] {
  db.openLeases.clear();
  db.run("DELETE FROM leases WHERE lease_id = ?", leaseId);
  return attemptsUnder(db, [leaseId], "").flatMap(
    (attempt) => loseNode(db, attempt, { nowMs }) ?? [],
  );
}

export function rescueExpired(
  db: SqliteDatabase,
  { nowMs, all }: Parameters<Storage["rescueExpired"]>[0],
): Task[] {
  const rows = db.all(
    "SELECT lease_id FROM leases WHERE expires_at_ms <= ?1 OR (?2 AND session IS NULL)",
    nowMs,
    all ? 1 : 0,
  );
  return rows.flatMap((row) => closeLease(db, { leaseId: String(row.lease_id), nowMs }));
}

/**
 * Whether a lease is open. A worker may have died, and its lease closed, since
 * its slot was reserved.
 */
export function isLeaseOpen(db: SqliteDatabase, leaseId: string): boolean {
  let open = db.openLeases.get(leaseId);
  if (open === undefined) {
    open = db.get("SELECT 1 FROM leases WHERE lease_id = ?", leaseId) !== undefined;
    db.openLeases.set(leaseId, open);
  }
  return open;
}
