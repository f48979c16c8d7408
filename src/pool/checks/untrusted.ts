/**
 * Reads values that may be forged. They come from JSON, so they are trees of plain
 * data, but of any shape. A list's length is checked before it is walked, only
 * declared members are copied, and JSON text that may be long is measured before it
 * is parsed, because parsing allocates for each value.
 */

export interface Fields {
  readonly [name: string]: unknown;
}

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A copy of the list; undefined for a non-list, a longer list, or one with an invalid item. */
export function listOf<One>(
  value: unknown,
  max: number,
  read: (one: unknown) => One | undefined,
): One[] | undefined {
  if (!Array.isArray(value) || value.length > max) {
    return undefined;
  }
  const list: One[] = [];
  for (const one of value) {
    const copy = read(one);
    if (copy === undefined) {
      return undefined;
    }
    list.push(copy);
  }
  return list;
}

export function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** Nesting of a value that a worker sends. */
export const MAX_MESSAGE_DEPTH = 200;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 1;
const OPENS = 2;
const CLOSES = 3;
const STRING = 4;
/** What each byte does outside of strings; 0 for most. One look at it is all that most bytes cost. */
const ROLES = new Uint8Array(256);
for (const [bytes, role] of [
  [",", COMMA],
  ["[{", OPENS],
  ["]}", CLOSES],
  ['"', STRING],
] as const) {
  for (const byte of Buffer.from(bytes)) {
    ROLES[byte] = role;
  }
}

/** The value of a JSON text; undefined for anything else, and for more than `maxValues` values. */
export function parseJson(text: Buffer, maxValues: number): unknown {
  if (!isSmall(text, maxValues)) {
    return undefined;
  }
  try {
    return JSON.parse(text.toString());
  } catch {
    // Not JSON.
    return undefined;
  }
}

/**
 * Counts the values of a JSON text without parsing it: behind each comma, and each bracket
 * that opens, stands at most one. What is no JSON is counted too, and refused by the parser.
 */
function isSmall(text: Buffer, maxValues: number): boolean {
  const { length } = text;
  let values = 1;
  let depth = 0;
  for (let at = 0; at < length; at += 1) {
    const role = ROLES[text[at] as number];
    if (role === 0) {
      continue;
    }
    if (role === STRING) {
      at = endOfString(text, at);
    } else if (role === CLOSES) {
      depth -= 1;
    } else {
      values += 1;
      depth += role === OPENS ? 1 : 0;
      if (values > maxValues || depth > MAX_MESSAGE_DEPTH) {
        return false;
      }
    }
  }
  return true;
}

/** Where the string that begins at `begin` ends. */
function endOfString(text: Buffer, begin: number): number {
  const { length } = text;
  for (let at = begin + 1; at < length; at += 1) {
    const byte = text[at];
    if (byte === QUOTE) {
      return at;
    }
    if (byte === BACKSLASH) {
      at += 1;
    }
  }
  return length;
}
