/**
 * The blob registry: reference counts of blobs. A blob without references is
 * marked as dying when its time has come. From then on it cannot be attached
 * again, so its bytes can be deleted outside any transaction.
 *
 * The count is a column of the blob's own row. Transactions that attach and
 * detach a blob at the same time serialize on that row; a count of payload
 * parts would miss the other's uncommitted ones.
 */
import type { Payload } from "../../protocol/messages.ts";
import type { Storage } from "../storage.ts";
import { storedFiles } from "../stored.ts";
import { once, prepared, type Session, statement } from "./session.ts";

const REGISTER = prepared(
  "register_blobs",
  `INSERT INTO blobs (blob_id, reference_count, delete_after_ms)
   SELECT blob_id, 0, $2 FROM unnest($1::text[]) AS given (blob_id) ON CONFLICT DO NOTHING`,
);

export async function registerBlobs(
  session: Session,
  { blobIds, deleteAfterMs }: Parameters<Storage["registerBlobs"]>[0],
): Promise<void> {
  await session.query(REGISTER, blobIds, deleteAfterMs);
}

const RELEASE = prepared(
  "release_blobs",
  `UPDATE blobs SET delete_after_ms = least(delete_after_ms, $2)
   WHERE blob_id = ANY ($1) AND reference_count = 0 AND NOT dying`,
);

export async function releaseBlobs(
  session: Session,
  { blobIds, nowMs }: Parameters<Storage["releaseBlobs"]>[0],
): Promise<void> {
  await session.query(RELEASE, blobIds, nowMs);
}

const TAKE = prepared(
  "take_dead_blobs",
  `UPDATE blobs SET dying = true, delete_after_ms = $1 WHERE blob_id IN (${once(
    `SELECT blob_id FROM blobs WHERE delete_after_ms <= $2
     ORDER BY delete_after_ms LIMIT $3 FOR UPDATE SKIP LOCKED`,
  )})
   RETURNING blob_id`,
);

export async function takeDeadBlobs(
  session: Session,
  { nowMs, againMs, limit }: Parameters<Storage["takeDeadBlobs"]>[0],
): Promise<string[]> {
  const rows = await session.query(TAKE, againMs, nowMs, limit);
  return rows.map(({ blob_id }) => String(blob_id));
}

const FORGET = prepared("forget_blobs", "DELETE FROM blobs WHERE blob_id = ANY ($1) AND dying");

export async function forgetBlobs(
  session: Session,
  { blobIds }: Parameters<Storage["forgetBlobs"]>[0],
): Promise<void> {
  await session.query(FORGET, blobIds);
}

const LOCK = prepared(
  "lock_blobs",
  `SELECT blob_id FROM blobs WHERE blob_id = ANY ($1) AND NOT dying ORDER BY blob_id FOR UPDATE`,
);

/**
 * Returns the payloads that refer to a missing blob. The blobs of the others
 * are locked until the transaction ends.
 */
export async function withoutBlobs(
  session: Session,
  payloads: readonly Payload[],
): Promise<Set<Payload>> {
  const idsOf = (payload: Payload) => storedFiles(payload).map(({ blob }) => blob.blobId);
  const blobIds = payloads.flatMap(idsOf);
  if (blobIds.length === 0) {
    return new Set();
  }
  const there = new Set((await session.query(LOCK, blobIds)).map(({ blob_id }) => blob_id));
  return new Set(payloads.filter((payload) => idsOf(payload).some((id) => !there.has(id))));
}

const ATTACH = prepared(
  "attach_blob",
  `UPDATE blobs SET reference_count = reference_count + 1, delete_after_ms = NULL
   WHERE blob_id = $1 AND NOT dying RETURNING blob_id`,
);

/** Adds a reference from a payload part. */
export async function attachBlob(session: Session, blobId: string): Promise<void> {
  const attached = await session.query(ATTACH, blobId);
  if (attached.length === 0) {
    throw new Error(`blob ${blobId} was deleted before anything named it`);
  }
}

/**
 * SQL that removes the references of `parts`, rows of payload_parts deleted by
 * the same statement at the time `nowMs`.
 */
export function detached(parts: string, nowMs: string): string {
  return `UPDATE blobs SET reference_count = reference_count - named.count,
      delete_after_ms = CASE WHEN reference_count <= named.count THEN ${nowMs} END
    FROM (SELECT blob_id, count(*)::integer AS count FROM ${parts}
      WHERE blob_id IS NOT NULL GROUP BY blob_id) AS named
    WHERE blobs.blob_id = named.blob_id`;
}

const FIND = statement(
  `(SELECT blob_id FROM artifact_files WHERE state = 'ready' LIMIT 5)
   UNION ALL (SELECT blob_id FROM blobs WHERE reference_count > 0 LIMIT 5)`,
);

/** A few blobs that artifacts and tasks name. */
export async function findBlobs(session: Session): Promise<string[]> {
  const rows = await session.query(FIND);
  return rows.map((row) => String(row.blob_id));
}
