/**
 * Payloads in Postgres: small JSON inline in the task's row, everything else in
 * `payload_parts`.
 */
import type { FileFacts, FileValue, Payload, StoredFile } from "../../protocol/messages.ts";
import { headText, isBare, type PayloadKey, readHeads } from "../stored.ts";
import { attachBlob } from "./blobs.ts";
import { type PostgresRow, prepared, type Session } from "./session.ts";

/**
 * JSON text that stands in the task's row, so that it need not be moved out of line (Postgres
 * does that with rows from about 2 kB).
 */
const MAX_INLINE_PAYLOAD_CHARACTERS = 2_048;

/** Whether the whole payload fits into the task's row. */
export function isInline(payload: Payload): boolean {
  return isBare(payload) && payload.json.length <= MAX_INLINE_PAYLOAD_CHARACTERS;
}

/** The inline column of the task's row; null for a payload that is not inline. */
export function inlineText(payload: Payload): string | null {
  return isInline(payload) ? payload.json : null;
}

const NO_BYTES = Buffer.alloc(0);

/** The column `about`, with a size and a digest when the bytes are in a blob. */
interface About extends FileFacts {
  readonly size?: number;
  readonly sha256?: string;
}

const WRITE = prepared(
  "write_part",
  `INSERT INTO payload_parts (deployment_id, task_id, side, part, about, data, blob_id, head)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
);

/**
 * Stores a payload that is not inline, and attaches its blobs. Sends one part
 * at a time to bound memory.
 */
export async function writePayload(
  session: Session,
  { deploymentId, taskId, side }: PayloadKey,
  payload: Payload,
): Promise<void> {
  const parts: (FileValue | StoredFile)[] = [
    payload.text ?? { contentType: "application/json", data: Buffer.from(payload.json) },
    ...payload.files,
  ];
  for (const [part, file] of parts.entries()) {
    const { about, bytes, blobId } = toColumns(file);
    const key = [deploymentId, taskId, side, part];
    const head = part === 0 ? headText(payload) : null;
    await session.query(WRITE, ...key, JSON.stringify(about), bytes, blobId, head);
    if (blobId !== null) {
      await attachBlob(session, blobId);
    }
  }
}

function toColumns(file: FileValue | StoredFile): {
  readonly about: About;
  readonly bytes: Buffer;
  readonly blobId: string | null;
} {
  if ("blob" in file) {
    const { blob, ...facts } = file;
    const { blobId, size, sha256 } = blob;
    return { about: { ...facts, size, sha256 }, bytes: NO_BYTES, blobId };
  }
  const { data, ...about } = file;
  const { buffer, byteOffset, byteLength } = data;
  return { about, bytes: Buffer.from(buffer, byteOffset, byteLength), blobId: null };
}

const READ = prepared(
  "read_parts",
  `SELECT about, data, blob_id, head FROM payload_parts
   WHERE deployment_id = $1 AND task_id = $2 AND side = $3 ORDER BY part`,
);

/** Reads a payload: `inline` is the column of the task's row. */
export async function readPayload(
  session: Session,
  { deploymentId, taskId, side }: PayloadKey,
  inline: unknown,
): Promise<Payload | undefined> {
  if (typeof inline === "string") {
    return { json: inline, files: [] };
  }
  const rows = await session.query(READ, deploymentId, taskId, side);
  const [text, ...files] = rows.map(toFile);
  if (text === undefined) {
    return undefined;
  }
  const heads = readHeads(side, rows[0]?.head);
  return "blob" in text
    ? { json: "", files, text, ...heads }
    : { json: Buffer.from(text.data).toString(), files, ...heads };
}

function toFile({ about, data, blob_id }: PostgresRow): FileValue | StoredFile {
  const { size = 0, sha256 = "", ...facts } = JSON.parse(String(about)) as About;
  return typeof blob_id === "string"
    ? { ...facts, blob: { blobId: blob_id, size, sha256 } }
    : { ...facts, data: data as Uint8Array };
}
