/**
 * Copies values that may be forged, from a structured clone or from JSON. A list
 * may have holes, which `every`, `map` and `find` skip, and a length of four
 * thousand million that cost a few bytes to send; one object may appear in a
 * thousand places. So a list's length is checked first, its iterator gives
 * `undefined` for a hole, and the copy shares nothing with what was sent.
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

/** The remaining size of a copy. It is counted down, each time for a shared object. */
export interface JsonRoom {
  values: number;
  /** UTF-16 code units of strings and names. */
  characters: number;
}

/** Nesting of a value that a worker sends. */
const MAX_MESSAGE_DEPTH = 200;

/** A copy of a JSON value; undefined for anything else, and when it exceeds `room`. */
export function jsonOf(value: unknown, room: JsonRoom, depth = 0): unknown {
  room.values -= 1;
  if (room.values < 0 || depth > MAX_MESSAGE_DEPTH) {
    return undefined;
  }
  if (typeof value === "string") {
    return fits(value, room) ? value : undefined;
  }
  if (Array.isArray(value)) {
    return listOf(value, room.values, (one) => jsonOf(one, room, depth + 1));
  }
  if (isFields(value)) {
    return objectOf(value, room, depth);
  }
  return value === null || typeof value === "number" || typeof value === "boolean"
    ? value
    : undefined;
}

function objectOf(value: Fields, room: JsonRoom, depth: number): Fields | undefined {
  if (Object.getPrototypeOf(value) !== Object.prototype) {
    return undefined;
  }
  const members: [string, unknown][] = [];
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) {
      continue;
    }
    const copy = fits(name, room) ? jsonOf(member, room, depth + 1) : undefined;
    if (copy === undefined) {
      return undefined;
    }
    members.push([name, copy]);
  }
  return Object.fromEntries(members);
}

function fits(text: string, room: JsonRoom): boolean {
  room.characters -= text.length;
  return room.characters >= 0;
}
