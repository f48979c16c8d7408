/**
 * A scan of JSON before it is parsed: how many values it holds, and how deep they
 * are nested. A parser makes objects of many times the size of their text:
 * 4 MiB of `[{},{},…]` become 1.4 million objects, which hold up every other
 * caller while they are made, checked and collected. The scan makes none, and
 * costs a quarter of parsing such a text.
 *
 * It reads bytes, because every byte that matters is ASCII and UTF-8 has no such
 * byte within another character. It does not tell valid JSON from invalid; the
 * parser does.
 */

/** JSON values in a body, objects and arrays counted with what is in them. */
export const MAX_JSON_VALUES = 100_000;

/**
 * JSON values in a message of an RPC, apart from arguments of endpoints: the longest list that
 * one takes, of the digests of an artifact's files, has 20,000.
 */
export const MAX_MESSAGE_VALUES = 30_000;

/**
 * JSON in JSON: deeper than anybody writes, and shallow enough for every recursive reader of a
 * message.
 */
export const MAX_JSON_DEPTH = 200;

const BYTE = {
  quote: 0x22,
  comma: 0x2c,
  openArray: 0x5b,
  backslash: 0x5c,
  closeArray: 0x5d,
  openObject: 0x7b,
  closeObject: 0x7d,
} as const;

/** Length from which the end of a string is searched for by the system's own means. */
const LONG_STRING_BYTES = 64;

/** How many more values may come, where several texts share one bound. */
export interface ValueRoom {
  values: number;
}

/**
 * What keeps a text from being parsed, as an end of "the body …"; undefined when nothing does.
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
  if (room === undefined && text.length <= MAX_JSON_DEPTH) {
    return undefined;
  }
  const most = room?.values ?? maxValues;
  let values = 1;
  let depth = 0;
  let previous = 0;
  for (let at = 0; at < text.length; at++) {
    const byte = text[at] as number;
    if (byte <= 0x20) {
      continue;
    }
    if (byte === BYTE.quote) {
      at = endOfString(text, at + 1);
    } else if (byte === BYTE.comma) {
      values++;
    } else if (byte === BYTE.openArray || byte === BYTE.openObject) {
      values++;
      depth++;
      if (depth > MAX_JSON_DEPTH) {
        return `is nested deeper than ${MAX_JSON_DEPTH} levels`;
      }
    } else if (byte === BYTE.closeArray || byte === BYTE.closeObject) {
      depth--;
      // It was opened as if it held a value.
      values -= previous === BYTE.openArray || previous === BYTE.openObject ? 1 : 0;
    }
    // A last one that opens may be about to be empty.
    if (values > most + 1) {
      break;
    }
    previous = byte;
  }
  if (room !== undefined) {
    room.values -= values;
  }
  return values > most
    ? `holds more than ${maxValues} JSON values: send less, or send it as a file`
    : undefined;
}

/** Where a string ends that begins here: at its closing quote, or where the text ends. */
function endOfString(text: Uint8Array, start: number): number {
  let at = start;
  for (; at - start < LONG_STRING_BYTES; at++) {
    const byte = text[at];
    if (byte === BYTE.quote || byte === undefined) {
      return at;
    }
    if (byte === BYTE.backslash) {
      at++;
    }
  }
  for (;;) {
    const quote = text.indexOf(BYTE.quote, at);
    if (quote === -1) {
      return text.length;
    }
    let first = quote;
    while (first > at && text[first - 1] === BYTE.backslash) {
      first--;
    }
    // A backslash escapes what follows, so an even number of them escape each other.
    if ((quote - first) % 2 === 0) {
      return quote;
    }
    at = quote + 1;
  }
}
