/** Leases of workers: open, renew, close, and rescue of expired ones. */
import type { Task } from "../../tasks/task.ts";
import type { Storage } from "../storage.ts";
import { attemptsUnder } from "./attempts.ts";
import type { SqliteDatabase } from "./database.ts";
import { loseNode } from "./end-attempt.ts";

export function openLease(
  db: SqliteDatabase,
  { leaseId, owner, nowMs, ttlMs }: Parameters<Storage["openLease"]>[0],
): void {
  db.openLeases.clear();
  db.run(
    `INSERT INTO leases (lease_id, owner, expires_at_ms) VALUES (?1, ?2, ?3)
     ON CONFLICT DO UPDATE SET expires_at_ms = ?3`,
    leaseId,
    owner,
    nowMs + ttlMs,
  );
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
  return attemptsUnder(db, [leaseId], "").flatMap((attempt) => loseNode(db, attempt, nowMs) ?? []);
}

export function rescueExpired(
  db: SqliteDatabase,
  { nowMs, all }: Parameters<Storage["rescueExpired"]>[0],
): Task[] {
  const rows = db.all(
    "SELECT lease_id FROM leases WHERE expires_at_ms <= ?",
    all ? Number.MAX_SAFE_INTEGER : nowMs,
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
