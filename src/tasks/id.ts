import { randomBytes } from "node:crypto";

/** Random digits are drawn for this many ids at once: one by one they cost a tenth of a submit. */
const IDS_PER_DRAW = 512;
const DIGITS_PER_ID = 19;

/** The digits whose two highest bits are 10, which is the variant. */
const VARIANTS = "89ab";

/**
 * Makes UUIDv7 ids (RFC 9562, section 5.7): 48 bits of milliseconds since
 * 1970, then 74 random bits. Time-ordered, so that inserts go to the end of
 * an index, and unguessable, because who knows a task's id may read it where
 * a deployment is open.
 */
export function createIdSource(now: () => number = Date.now): () => string {
  /** Random hexadecimal digits, and how many of them are used. */
  let digits = "";
  let used = 0;
  /** The first thirteen digits of ids of one millisecond, which is often that of the last id. */
  let prefix = "";
  let prefixMs = Number.NaN;
  const draw = (count: number): string => {
    used += count;
    return digits.slice(used - count, used);
  };
  return () => {
    if (used === digits.length) {
      digits = randomBytes((IDS_PER_DRAW * DIGITS_PER_ID) / 2).toString("hex");
      used = 0;
    }
    const nowMs = now();
    if (nowMs !== prefixMs) {
      prefixMs = nowMs;
      prefix = idBoundary(nowMs);
    }
    const variant = VARIANTS[Number.parseInt(draw(1), 16) & 3];
    return `${prefix}-7${draw(3)}-${variant}${draw(3)}-${draw(12)}`;
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
