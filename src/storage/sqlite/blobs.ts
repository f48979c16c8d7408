/**
 * The blob registry: reference counts of blobs. A blob without references is
 * marked as dying when its time has come. From then on it cannot be attached
 * again, so its bytes can be deleted outside any transaction.
 */
import type { Storage } from "../storage.ts";
import type { SqliteDatabase } from "./database.ts";

export function registerBlobs(
  db: SqliteDatabase,
  { blobIds, deleteAfterMs }: Parameters<Storage["registerBlobs"]>[0],
): void {
  for (const blobId of blobIds) {
    db.run(
      `INSERT INTO blobs (blob_id, reference_count, delete_after_ms) VALUES (?, 0, ?)
       ON CONFLICT DO NOTHING`,
      blobId,
      deleteAfterMs,
    );
  }
}

export function releaseBlobs(
  db: SqliteDatabase,
  { blobIds, nowMs }: Parameters<Storage["releaseBlobs"]>[0],
): void {
  for (const blobId of blobIds) {
    db.run(
      `UPDATE blobs SET delete_after_ms = min(delete_after_ms, ?)
       WHERE blob_id = ? AND reference_count = 0 AND dying = 0`,
      nowMs,
      blobId,
    );
  }
}

export function takeDeadBlobs(
  db: SqliteDatabase,
  { nowMs, againMs, limit }: Parameters<Storage["takeDeadBlobs"]>[0],
): string[] {
  const rows = db.all(
    `UPDATE blobs SET dying = 1, delete_after_ms = ?1 WHERE blob_id IN (
       SELECT blob_id FROM blobs INDEXED BY blobs_dead
       WHERE delete_after_ms <= ?2 ORDER BY delete_after_ms LIMIT ?3)
     RETURNING blob_id`,
    againMs,
    nowMs,
    limit,
  );
  return rows.map(({ blob_id }) => String(blob_id));
}

export function forgetBlobs(
  db: SqliteDatabase,
  { blobIds }: Parameters<Storage["forgetBlobs"]>[0],
): void {
  for (const blobId of blobIds) {
    db.run("DELETE FROM blobs WHERE blob_id = ? AND dying = 1", blobId);
  }
}

/** Whether a payload may still refer to the blob. */
export function isAttachable(db: SqliteDatabase, blobId: string): boolean {
  return db.get("SELECT 1 FROM blobs WHERE blob_id = ? AND dying = 0", blobId) !== undefined;
}

/** Adds a reference from a payload part. */
export function attachBlob(db: SqliteDatabase, blobId: string): void {
  const attached = db.run(
    `UPDATE blobs SET reference_count = reference_count + 1, delete_after_ms = NULL
     WHERE blob_id = ? AND dying = 0`,
    blobId,
  );
  if (attached === 0) {
    throw new Error(`blob ${blobId} was deleted before anything named it`);
  }
}

/** Removes the reference of a deleted payload part. */
export function detachBlob(db: SqliteDatabase, blobId: string, nowMs: number): void {
  db.run(
    `UPDATE blobs SET reference_count = reference_count - 1,
       delete_after_ms = CASE WHEN reference_count <= 1 THEN ?2 END
     WHERE blob_id = ?1`,
    blobId,
    nowMs,
  );
}

/** A blob that a task or an artifact names; undefined when none does. */
export function findBlobs(db: SqliteDatabase): string[] {
  const rows = [
    ...db.all("SELECT blob_id FROM artifact_files WHERE state = 'ready' LIMIT 5"),
    ...db.all("SELECT blob_id FROM blobs WHERE reference_count > 0 LIMIT 5"),
  ];
  return rows.map((row) => String(row.blob_id));
}
