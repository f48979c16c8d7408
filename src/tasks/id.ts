import { randomDigits } from "../digits.ts";

const TAILS_PER_DRAW = 512;

/** `-7xxx-yxxx-xxxxxxxxxxxx`, where each x is random and y has two random bits, and one digit more. */
const TAIL_DIGITS = 24;

/** Codes of each digit with its two highest bits made 10, which is the variant, by codes of digits. */
const VARIANTS = new Map(
  Array.from("0123456789abcdef", (digit, value) => [
    digit.charCodeAt(0),
    "89ab".charCodeAt(value & 3),
  ]),
);

/**
 * Makes UUIDv7 ids (RFC 9562, section 5.7): 48 bits of milliseconds since
 * 1970, then 74 random bits. Time-ordered, so that inserts go to the end of
 * an index, and unguessable, because who knows a task's id may read it where
 * a deployment is open.
 */
export function createIdSource(now: () => number = Date.now): () => string {
  let tails = "";
  let used = 0;
  /** The first thirteen digits of ids of one millisecond, which is often that of the last id. */
  let prefix = "";
  let prefixMs = Number.NaN;
  return () => {
    const nowMs = now();
    if (nowMs !== prefixMs) {
      prefixMs = nowMs;
      prefix = idBoundary(nowMs);
    }
    if (used === tails.length) {
      tails = drawTails();
      used = 0;
    }
    used += TAIL_DIGITS;
    return prefix + tails.slice(used - TAIL_DIGITS, used - 1);
  };
}

/** What follows the time in ids, one after the other. Each is a piece of one text: put together it would be ten. */
function drawTails(): string {
  const digits = Buffer.from(randomDigits(TAILS_PER_DRAW * TAIL_DIGITS));
  for (let at = 0; at < digits.length; at += TAIL_DIGITS) {
    digits.write("-7", at);
    digits.write("-", at + 5);
    digits.writeUInt8(VARIANTS.get(digits.readUInt8(at + 6)) as number, at + 6);
    digits.write("-", at + 10);
  }
  return digits.toString("latin1");
}

const TASK_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** True for text that could be a task's id: anything else is not looked up. */
export function isTaskId(text: string): boolean {
  return TASK_ID.test(text);
}

/** The last time that was read, which is often that of the next id, with its digits. */
const last = { digits: idBoundary(0), timeMs: 0 };

/** The time in a task's id, in milliseconds since 1970. */
export function timeOfTaskId(taskId: string): number {
  const digits = taskId.slice(0, 13);
  if (digits !== last.digits) {
    last.digits = digits;
    last.timeMs = Number.parseInt(last.digits.replace("-", ""), 16);
  }
  return last.timeMs;
}

/** Text that sorts before the ids of this time (milliseconds since 1970) and after those of earlier times. */
export function idBoundary(timeMs: number): string {
  const time = timeMs.toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}`;
}
