/** Payloads in SQLite: small JSON inline in the task's row, everything else in `payload_parts`. */
import type { FileValue, Payload, StoredFile } from "../../protocol/messages.ts";
import { headText, isBare, type PayloadKey, readHeads, storedFiles } from "../stored.ts";
import { attachBlob, isAttachable } from "./blobs.ts";
import type { SqliteDatabase } from "./database.ts";
import type { SqliteRow } from "./rows.ts";

/**
 * JSON text that stands in the task's row; the rest goes to `payload_parts`, so that claims
 * and updates move small rows.
 */
const MAX_INLINE_PAYLOAD_CHARACTERS = 2_048;

const NO_BYTES = new Uint8Array(0);

/** Whether the whole payload fits into the task's row. */
export function isInline(payload: Payload): boolean {
  return isBare(payload) && payload.json.length <= MAX_INLINE_PAYLOAD_CHARACTERS;
}

/** Whether every blob of the payload can be attached. */
export function hasBlobs(db: SqliteDatabase, payload: Payload): boolean {
  return storedFiles(payload).every(({ blob }) => isAttachable(db, blob.blobId));
}

/** Stores a payload that is not inline, and attaches its blobs. */
export function writePayload(db: SqliteDatabase, key: PayloadKey, payload: Payload): void {
  const parts: (FileValue | StoredFile)[] = [
    payload.text ?? { contentType: "application/json", data: Buffer.from(payload.json) },
    ...payload.files,
  ];
  for (const [part, file] of parts.entries()) {
    const blob = "blob" in file ? file.blob : undefined;
    db.run(
      `INSERT INTO payload_parts (deployment_id, task_id, side, part, content_type, filename,
         data, blob_id, blob_bytes, blob_sha256, head)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      key.deploymentId,
      key.taskId,
      key.side,
      part,
      file.contentType,
      file.filename ?? null,
      "data" in file ? file.data : NO_BYTES,
      blob?.blobId ?? null,
      blob?.size ?? null,
      blob?.sha256 ?? null,
      part === 0 ? headText(payload) : null,
    );
    if (blob) {
      attachBlob(db, blob.blobId);
    }
  }
}

/** Reads a payload: `inline` is the column of the task's row. */
export function readPayload(
  db: SqliteDatabase,
  key: PayloadKey,
  inline: unknown,
): Payload | undefined {
  if (typeof inline === "string") {
    return { json: inline, files: [] };
  }
  const rows = db.all(
    `SELECT content_type, filename, data, blob_id, blob_bytes, blob_sha256, head
     FROM payload_parts
     WHERE deployment_id = ? AND task_id = ? AND side = ? ORDER BY part`,
    key.deploymentId,
    key.taskId,
    key.side,
  );
  const [text, ...files] = rows.map(toFile);
  if (text === undefined) {
    return undefined;
  }
  const heads = readHeads(key.side, rows[0]?.head);
  return "blob" in text
    ? { json: "", files, text, ...heads }
    : { json: Buffer.from(text.data).toString(), files, ...heads };
}

function toFile(row: SqliteRow): FileValue | StoredFile {
  const facts = {
    contentType: String(row.content_type),
    ...(typeof row.filename === "string" && { filename: row.filename }),
  };
  return typeof row.blob_id === "string"
    ? {
        ...facts,
        blob: {
          blobId: row.blob_id,
          size: Number(row.blob_bytes),
          sha256: String(row.blob_sha256),
        },
      }
    : { ...facts, data: row.data as Uint8Array };
}
