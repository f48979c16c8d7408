/** Ids of tasks, and of all else: UUIDs that sort by time and say the cell that keeps what they name. */
import { createDigitSource } from "../collections/bytes.ts";

/** The cell of accounts and of all that is not a task; of tasks, too, where there is no other. */
export const HOME_CELL = 0;

/** Cells that two digits of an id can tell apart. */
export const MAX_CELLS = 256;

/** `x-yxxx-xxxxxxxxxxxx`, where each x is random and y has two random bits. */
const TAIL_LENGTH = 19;

/** By character code of a hex digit: the code of the digit with the variant bits 10 set. */
const VARIANTS = new Map(
  Array.from("0123456789abcdef", (digit, value) => [
    digit.charCodeAt(0),
    "89ab".charCodeAt(value & 3),
  ]),
);

/**
 * Makes UUIDv8 ids (RFC 9562, section 5.8): 48 bits of milliseconds since 1970, 8 bits of the cell,
 * then 66 random bits. Time-ordered, so that inserts go to the end of an index, and unguessable,
 * because in an open deployment anyone who knows a task's id may read the task.
 */
export function createIdSource(now: () => number = Date.now): IdSource {
  const newTail = createDigitSource(TAIL_LENGTH, toTails);
  /** The first fifteen characters of ids of one millisecond, which is often that of the last id. */
  let prefix = "";
  let prefixMs = Number.NaN;
  return (cell = HOME_CELL) => {
    const nowMs = now();
    if (nowMs !== prefixMs) {
      prefixMs = nowMs;
      prefix = `${idBoundary(nowMs)}-8`;
    }
    return prefix + (CELL_DIGITS[cell] as string) + newTail();
  };
}

/** Makes ids: of tasks in the cell that is given, and of all else, which is home's. */
export type IdSource = (cell?: number) => string;

const CELL_DIGITS = Array.from({ length: MAX_CELLS }, (_, cell) =>
  cell.toString(16).padStart(2, "0"),
);

/** Turns random digits into the tails of ids. A tail is a slice of one text instead of ten joined parts. */
function toTails(digits: string): string {
  const tails = Buffer.from(digits);
  for (let at = 0; at < tails.length; at += TAIL_LENGTH) {
    tails.write("-", at + 1);
    tails.writeUInt8(VARIANTS.get(tails.readUInt8(at + 2)) as number, at + 2);
    tails.write("-", at + 6);
  }
  return tails.toString("latin1");
}

const TASK_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[78][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** True for text in the form of a task's id. */
export function isTaskId(text: string): boolean {
  return TASK_ID.test(text);
}

/** The cell in a task's id. Ids of version 7 were made before there were cells, and are home's. */
export function cellOfTaskId(taskId: string): number {
  return taskId[14] === "8" ? Number.parseInt(taskId.slice(15, 17), 16) : HOME_CELL;
}

/** A cache of the last time read with its digits: the next id often has the same time. */
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

/** Text that sorts before all ids of this time (milliseconds since 1970), and after earlier ones. */
export function idBoundary(timeMs: number): string {
  const time = timeMs.toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}`;
}
