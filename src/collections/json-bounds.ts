/**
 * The bounds of JSON before it is parsed: how many values it holds, and how deep they are nested.
 * 4 MiB of `[{},{},…]` become 1.4 million objects, which hold up every other caller while they are
 * made, checked and collected.
 */
import { JsonFault, JsonScan, MAX_JSON_DEPTH } from "./json-scan.ts";

/**
 * Objects, arrays, texts and members of arguments that are parsed, for a schema that has to see
 * them; what the scan alone checks, such as arrays of numbers, is not counted.
 */
export const MAX_JSON_VALUES = 100_000;

/**
 * JSON values in a message of an RPC, apart from arguments of endpoints: the longest list that
 * one takes, of the digests of an artifact's files, has 20,000.
 */
export const MAX_MESSAGE_VALUES = 30_000;

/** Bytes that open an array or an object. */
const OPENING = Buffer.from("[{");

/** How many more values may come, where several texts share one bound. */
export interface ValueRoom {
  values: number;
}

/**
 * What keeps a text from being parsed, as an end of "the body …"; undefined when nothing does, or
 * when it is no JSON, of which the parser tells more.
 *
 * @param room from which the values of the text are taken. Default: that of a text alone.
 * @param maxValues of a text alone, or of those that share the room
 */
export function faultOfJson(
  text: Uint8Array,
  room?: ValueRoom,
  maxValues = MAX_JSON_VALUES,
): string | undefined {
  // Each level and each value takes a byte at least, so a short text alone cannot exceed either.
  const isShort = room === undefined && text.length <= maxValues;
  if (isShort && (text.length <= MAX_JSON_DEPTH || isShallow(text))) {
    return undefined;
  }
  const scan = new JsonScan(text, true, false);
  try {
    scan.whole();
  } catch (err) {
    if (!(err instanceof JsonFault)) {
      throw err;
    }
    if (!err.isSyntax) {
      return err.message;
    }
  }
  const most = room?.values ?? maxValues;
  if (room !== undefined) {
    room.values -= scan.values;
  }
  return scan.values > most ? tooMany(maxValues) : undefined;
}

/** Whether a text opens too few objects and arrays to be too deep, which nearly all do. */
function isShallow(text: Uint8Array): boolean {
  let left = MAX_JSON_DEPTH;
  for (const byte of OPENING) {
    for (let at = text.indexOf(byte); at !== -1; at = text.indexOf(byte, at + 1)) {
      left--;
      if (left < 0) {
        return false;
      }
    }
  }
  return true;
}

/** The fault of a text that holds more values than may be. */
export function tooMany(maxValues: number): string {
  return `holds more than ${maxValues} JSON values: send less, or send it as a file`;
}
