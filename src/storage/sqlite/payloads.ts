import type { FileValue, Payload } from "../../sdk/protocol.ts";
import type { TaskKey } from "../storage.ts";
import type { Database } from "./database.ts";

/**
 * JSON text up to this length stands in the task's row; the rest goes to
 * `payload_parts`, so that claims and updates move small rows.
 */
const INLINE_CHARACTERS = 2_048;

/** Which payload of which task. */
export interface PayloadKey extends TaskKey {
  readonly side: "arguments" | "result";
}

/** True when the payload fits into the task's row whole. */
export function isInline(payload: Payload): boolean {
  return payload.files.length === 0 && payload.json.length <= INLINE_CHARACTERS;
}

/** Stores a payload that is not inline. */
export function writePayload(db: Database, key: PayloadKey, payload: Payload): void {
  const parts: FileValue[] = [
    { contentType: "application/json", data: Buffer.from(payload.json) },
    ...payload.files,
  ];
  for (const [part, { contentType, filename, data }] of parts.entries()) {
    db.run(
      `INSERT INTO payload_parts (deployment_id, task_id, side, part, content_type, filename, data)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
      key.deploymentId,
      key.taskId,
      key.side,
      part,
      contentType,
      filename ?? null,
      data,
    );
  }
}

/** Reads a payload: `inline` is the column of the task's row. */
export function readPayload(db: Database, key: PayloadKey, inline: unknown): Payload | undefined {
  if (typeof inline === "string") {
    return { json: inline, files: [] };
  }
  const rows = db.all(
    `SELECT content_type, filename, data FROM payload_parts
     WHERE deployment_id = ? AND task_id = ? AND side = ? ORDER BY part`,
    key.deploymentId,
    key.taskId,
    key.side,
  );
  const [json, ...files] = rows.map((row) => ({
    contentType: String(row.content_type),
    ...(typeof row.filename === "string" && { filename: row.filename }),
    data: row.data as Uint8Array,
  }));
  return json && { json: Buffer.from(json.data).toString(), files };
}
