import { randomFillSync } from "node:crypto";

/** Random bytes are drawn for this many ids at once: one by one they cost a tenth of a submit. */
const IDS_PER_DRAW = 512;
const BYTES_PER_ID = 10;

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/**
 * Makes UUIDv7 ids (RFC 9562, section 5.7): 48 bits of milliseconds since
 * 1970, then 74 random bits. Time-ordered, so that inserts go to the end of
 * an index, and unguessable, because who knows a task's id may read it where
 * a deployment is open.
 */
export function createIdSource(now: () => number = Date.now): () => string {
  const pool = new Uint8Array(IDS_PER_DRAW * BYTES_PER_ID);
  let used = pool.length;
  return () => {
    if (used === pool.length) {
      randomFillSync(pool);
      used = 0;
    }
    const hex = (offset: number): string => HEX[pool[used + offset] ?? 0] ?? "";
    const time = now().toString(16).padStart(12, "0");
    const version = HEX[0x70 | ((pool[used] ?? 0) & 0x0f)];
    const variant = HEX[0x80 | ((pool[used + 2] ?? 0) & 0x3f)];
    const id =
      `${time.slice(0, 8)}-${time.slice(8)}-${version}${hex(1)}-${variant}${hex(3)}-` +
      hex(4) +
      hex(5) +
      hex(6) +
      hex(7) +
      hex(8) +
      hex(9);
    used += BYTES_PER_ID;
    return id;
  };
}

const TASK_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** True for text that could be a task's id: anything else is not looked up. */
export function isTaskId(text: string): boolean {
  return TASK_ID.test(text);
}

/** The time in a task's id, in milliseconds since 1970. */
export function timeOfTaskId(taskId: string): number {
  return Number.parseInt(taskId.slice(0, 8) + taskId.slice(9, 13), 16);
}

/** Text that sorts before the ids of this time (milliseconds since 1970) and after those of earlier times. */
export function idBoundary(timeMs: number): string {
  const time = timeMs.toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}`;
}
