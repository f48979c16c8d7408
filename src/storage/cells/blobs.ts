/**
 * The registry of large files over cells. A blob is registered at home before it is known which task it will
 * belong to, and moved to the registry of the task's cell before that refers to it: first it is registered
 * there, then home forgets it. Wherever that ends halfway, each registry that has it lets it die in its time,
 * and no task refers to it yet.
 */
import type { Payload } from "../../protocol/messages.ts";
import { prepared } from "../postgres/session.ts";
import type { PostgresStorage } from "../postgres/storage.ts";
import { storedFiles } from "../stored.ts";

const FIND = prepared(
  "blobs_to_move",
  `SELECT blob_id, delete_after_ms FROM blobs
   WHERE blob_id = ANY ($1) AND reference_count = 0 AND NOT dying`,
);
const MOVED = prepared(
  "moved_blobs",
  `DELETE FROM blobs WHERE blob_id = ANY ($1) AND reference_count = 0 AND NOT dying
   RETURNING blob_id`,
);
const WITHDRAW = prepared(
  "withdraw_blobs",
  `DELETE FROM blobs WHERE blob_id = ANY ($1) AND reference_count = 0`,
);

/** Moves the blobs of these payloads that home has, and nothing refers to, to a cell. */
export async function moveBlobs(
  home: PostgresStorage,
  cell: PostgresStorage,
  payloads: readonly Payload[],
): Promise<void> {
  const blobIds = payloads.flatMap((payload) =>
    storedFiles(payload).map(({ blob }) => blob.blobId),
  );
  if (blobIds.length === 0) {
    return;
  }
  const found = await home.beside((db) => db.query(FIND, blobIds));
  if (found.length === 0) {
    return;
  }
  const ids = found.map((row) => String(row.blob_id));
  const deleteAfterMs = Math.max(...found.map((row) => Number(row.delete_after_ms)));
  await cell.registerBlobs({ blobIds: ids, deleteAfterMs });
  const moved = await home.beside((db) => db.query(MOVED, ids));
  const kept = new Set(moved.map((row) => row.blob_id));
  // Their time came meanwhile, and home deletes them.
  const lost = ids.filter((id) => !kept.has(id));
  if (lost.length > 0) {
    await cell.beside((db) => db.query(WITHDRAW, lost));
  }
}
