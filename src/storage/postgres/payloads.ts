import type { FileValue, Payload } from "../../sdk/protocol.ts";
import type { TaskKey } from "../storage.ts";
import { prepared, type Session } from "./session.ts";

/**
 * JSON text up to this length stands in the task's row, so that it need not be
 * moved out of line (Postgres does that with rows from about 2 kB).
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

/** What stands in the task's row: null for a payload that is not inline. */
export function inlineText(payload: Payload): string | null {
  return isInline(payload) ? payload.json : null;
}

const WRITE = prepared(
  "write_part",
  `INSERT INTO payload_parts (deployment_id, task_id, side, part, about, data)
   VALUES ($1, $2, $3, $4, $5, $6)`,
);

/** Stores a payload that is not inline; a part at a time, so that one is in transit at once. */
export async function writePayload(
  session: Session,
  { deploymentId, taskId, side }: PayloadKey,
  payload: Payload,
): Promise<void> {
  const parts: FileValue[] = [
    { contentType: "application/json", data: Buffer.from(payload.json) },
    ...payload.files,
  ];
  for (const [part, { data, ...about }] of parts.entries()) {
    const { buffer, byteOffset, byteLength } = data;
    const bytes = Buffer.from(buffer, byteOffset, byteLength);
    await session.query(WRITE, deploymentId, taskId, side, part, JSON.stringify(about), bytes);
  }
}

const READ = prepared(
  "read_parts",
  `SELECT about, data FROM payload_parts
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
  const [json, ...files] = rows.map(
    ({ about, data }): FileValue => ({
      ...(JSON.parse(String(about)) as Omit<FileValue, "data">),
      data: data as Uint8Array,
    }),
  );
  return json && { json: Buffer.from(json.data).toString(), files };
}
