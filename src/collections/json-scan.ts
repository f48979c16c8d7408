/**
 * A scanner of JSON (RFC 8259): one pass over the bytes of a text that checks its syntax, counts
 * its values, and notes where the members of its object stand and what they are made of. It makes
 * no values: a parser makes objects of many times the size of their text (4 MiB of `[{},{},…]`
 * become 1.4 million of them, which hold up every other caller), and numbers of 64 bits that its
 * language may not have. What is spliced from one text into another is spliced by these places, so
 * that it arrives as it was sent.
 *
 * It reads bytes, because every byte that matters is ASCII and UTF-8 has no such byte within
 * another character. Whether the bytes are UTF-8 is for the caller to see.
 */

import { textBetween } from "./bytes.ts";

/**
 * JSON in JSON: deeper than anybody writes, and shallow enough for every recursive reader of a
 * message.
 */
export const MAX_JSON_DEPTH = 200;

/** Levels of nested arrays that the scan describes. */
const MAX_LEVELS = 16;

/** Length from which the end of a string is searched for by the system's own means. */
const LONG_STRING_BYTES = 64;

/** Digits of an integer that is exact in every language. */
const MAX_SAFE_DIGITS = 15;

/** What a value is, as bits: a level of arrays may hold several kinds. */
export const KIND = {
  /** An integer of up to 15 digits. */
  integer: 1,
  /** An integer of more digits. */
  wide: 2,
  /** A number with a fraction or an exponent. */
  fraction: 4,
  string: 8,
  boolean: 16,
  null: 32,
  array: 64,
  object: 128,
  /** `NaN`, `Infinity` or `-Infinity`, which only Python writes and reads. */
  constant: 256,
} as const;

/** One level of a value: the value itself, what is in it if that is an array, and so on. */
export interface JsonLevel {
  /** What there is, as bits of `KIND`. */
  kinds: number;
  /** The lengths of the shortest and the longest array on the level above; 0 for the first level. */
  shortest: number;
  longest: number;
}

/** Where a value stands, and what it is made of. */
interface Scanned {
  readonly start: number;
  readonly end: number;
  readonly levels: readonly JsonLevel[];
  /** Objects, arrays and texts, and members of objects, with this one. */
  readonly objects: number;
  /** All values, with this one. */
  readonly values: number;
  /** The first number that a double does not hold: an integer rounded, or one beyond its range. */
  readonly inexact: string | undefined;
  /** Whether there is a number of Python in it that JSON does not have. */
  readonly hasConstants: boolean;
}

export interface ScannedMember extends Scanned {
  readonly name: string;
}

export interface ScannedJson extends Scanned {
  /** Those of an object; undefined for any other value. A name may occur twice: the last one counts. */
  readonly members: readonly ScannedMember[] | undefined;
  /** The elements of an array that was scanned for them; else undefined. */
  readonly elements: readonly Scanned[] | undefined;
}

interface JsonScanOptions {
  /** Takes Python's `NaN`, `Infinity` and `-Infinity` for numbers. Default: they are faults. */
  readonly constants?: boolean;
  /** Notes the elements of an array, too. */
  readonly elements?: boolean;
}

/** Why a text cannot be read, as an end of "the body …". */
export class JsonFault extends Error {
  override readonly name = "JsonFault";
  /** True for a text that is no JSON, and not for one beyond the bounds. */
  readonly isSyntax: boolean;

  constructor(message: string, isSyntax: boolean) {
    super(message);
    this.isSyntax = isSyntax;
  }
}

/** Scans a whole text. Throws `JsonFault`. */
export function scanJson(text: Uint8Array, options: JsonScanOptions = {}): ScannedJson {
  return new JsonScan(text, options.constants ?? false).whole(options.elements ?? false);
}

const BYTE = {
  quote: 0x22,
  plus: 0x2b,
  comma: 0x2c,
  minus: 0x2d,
  dot: 0x2e,
  zero: 0x30,
  nine: 0x39,
  colon: 0x3a,
  openArray: 0x5b,
  backslash: 0x5c,
  closeArray: 0x5d,
  u: 0x75,
  openObject: 0x7b,
  closeObject: 0x7d,
} as const;

const WORDS: Readonly<Record<number, readonly [word: string, kind: number]>> = {
  116: ["true", KIND.boolean],
  102: ["false", KIND.boolean],
  110: ["null", KIND.null],
  78: ["NaN", KIND.constant],
  73: ["Infinity", KIND.constant],
};

/** What may follow a backslash, but `u`. */
const ESCAPES: ReadonlySet<number> = new Set(Buffer.from('"\\/bfnrt'));
const HEX = /^[0-9a-fA-F]{4}$/;

/** One scan; `isStrict`: whether the characters of strings are looked at, which a parser does as well. */
export class JsonScan {
  values = 0;
  readonly #text: Uint8Array;
  readonly #constants: boolean;
  readonly #isStrict: boolean;
  #at = 0;
  #objects = 0;
  #inexact: string | undefined;
  #hasConstants = false;
  #levels: JsonLevel[] = [];

  constructor(text: Uint8Array, constants: boolean, isStrict = true) {
    this.#text = text;
    this.#constants = constants;
    this.#isStrict = isStrict;
  }

  whole(withElements: boolean): ScannedJson {
    this.#space();
    const byte = this.#text[this.#at];
    const start = this.#at;
    const members: ScannedMember[] = [];
    const elements: Scanned[] = [];
    const isObject = byte === BYTE.openObject;
    const isList = withElements && byte === BYTE.openArray;
    let whole: Scanned;
    if (isObject || isList) {
      this.values++;
      this.#objects++;
      const kinds = isObject ? KIND.object : KIND.array;
      if (isObject) {
        this.#object(1, (name) => members.push({ ...this.#measured(1), name }));
      } else {
        this.#elements((element) => elements.push(element));
      }
      const { values } = this;
      const level = { kinds, shortest: 0, longest: 0 };
      whole = {
        start,
        end: this.#at,
        levels: [level],
        objects: this.#objects,
        values,
        inexact: [...members, ...elements].find(({ inexact }) => inexact !== undefined)?.inexact,
        hasConstants: [...members, ...elements].some(({ hasConstants }) => hasConstants),
      };
    } else {
      whole = this.#measured(0);
    }
    this.#space();
    if (this.#at < this.#text.length) {
      throw this.#unexpected();
    }
    return {
      ...whole,
      members: isObject ? members : undefined,
      elements: isList ? elements : undefined,
    };
  }

  #elements(take: (element: Scanned) => void): void {
    this.#at++;
    this.#space();
    if (this.#text[this.#at] === BYTE.closeArray) {
      this.#at++;
      return;
    }
    for (;;) {
      this.#space();
      take(this.#measured(1));
      this.#space();
      const byte = this.#text[this.#at];
      if (byte !== BYTE.comma && byte !== BYTE.closeArray) {
        throw this.#unexpected();
      }
      this.#at++;
      if (byte === BYTE.closeArray) {
        return;
      }
    }
  }

  /** A value with what it is made of. */
  #measured(depth: number): Scanned {
    const { values } = this;
    const objects = this.#objects;
    this.#levels = [{ kinds: 0, shortest: 0, longest: 0 }];
    this.#inexact = undefined;
    this.#hasConstants = false;
    const start = this.#at;
    const kinds = this.#value(depth, 0);
    const [first] = this.#levels;
    (first as JsonLevel).kinds = kinds;
    return {
      start,
      end: this.#at,
      levels: this.#levels,
      objects: this.#objects - objects,
      values: this.values - values,
      inexact: this.#inexact,
      hasConstants: this.#hasConstants,
    };
  }

  /** Reads a value and returns its kind. `level` is its own; -1 within what is not described. */
  #value(depth: number, level: number): number {
    this.values++;
    const byte = this.#text[this.#at] ?? 0;
    if (byte === BYTE.minus || (byte >= BYTE.zero && byte <= BYTE.nine)) {
      return this.#number();
    }
    if (byte === BYTE.quote) {
      this.#objects++;
      this.#string();
      return KIND.string;
    }
    if (byte === BYTE.openArray) {
      this.#objects++;
      this.#array(depth + 1, level);
      return KIND.array;
    }
    if (byte === BYTE.openObject) {
      this.#objects++;
      this.#object(depth + 1, (_) => void this.#value(depth + 1, -1));
      return KIND.object;
    }
    return this.#word(byte);
  }

  #array(depth: number, level: number): void {
    this.#refuseDeep(depth);
    const text = this.#text;
    const inner = level < 0 || level + 1 >= MAX_LEVELS ? -1 : level + 1;
    let kinds = 0;
    let length = 0;
    this.#at++;
    this.#space();
    if (text[this.#at] === BYTE.closeArray) {
      this.#at++;
    } else {
      for (;;) {
        const byte = text[this.#at] as number;
        if (byte >= BYTE.zero && byte <= BYTE.nine) {
          this.values++;
          kinds |= this.#number();
        } else {
          kinds |= this.#value(depth, inner);
        }
        length++;
        let next = text[this.#at] as number;
        if (next <= 0x20) {
          this.#space();
          next = text[this.#at] as number;
        }
        this.#at++;
        if (next === BYTE.closeArray) {
          break;
        }
        if (next !== BYTE.comma) {
          this.#at--;
          throw this.#unexpected();
        }
        if ((text[this.#at] as number) <= 0x20) {
          this.#space();
        }
      }
    }
    if (inner >= 0) {
      this.#note(inner, kinds, length);
    }
  }

  #note(level: number, kinds: number, length: number): void {
    const noted = this.#levels[level];
    if (noted === undefined) {
      this.#levels[level] = { kinds, shortest: length, longest: length };
    } else {
      noted.kinds |= kinds;
      noted.shortest = Math.min(noted.shortest, length);
      noted.longest = Math.max(noted.longest, length);
    }
  }

  /** Reads an object; `take` reads the value of each member. */
  #object(depth: number, take: (name: string) => void): void {
    this.#refuseDeep(depth);
    const text = this.#text;
    const isTop = depth === 1;
    this.#at++;
    this.#space();
    if (text[this.#at] === BYTE.closeObject) {
      this.#at++;
      return;
    }
    for (;;) {
      const start = this.#at;
      if (text[start] !== BYTE.quote) {
        throw this.#unexpected();
      }
      this.#string();
      const isNamed = isTop && this.#isStrict;
      const name = isNamed ? (JSON.parse(textBetween(text, start, this.#at)) as string) : "";
      this.#space();
      if (text[this.#at] !== BYTE.colon) {
        throw this.#unexpected();
      }
      this.#at++;
      this.#space();
      this.#objects++;
      take(name);
      this.#space();
      const next = text[this.#at];
      if (next !== BYTE.comma && next !== BYTE.closeObject) {
        throw this.#unexpected();
      }
      this.#at++;
      if (next === BYTE.closeObject) {
        return;
      }
      this.#space();
    }
  }

  #number(): number {
    const text = this.#text;
    const start = this.#at;
    let at = start;
    let byte = text[at] as number;
    if (byte === BYTE.minus) {
      byte = text[++at] as number;
      if (byte === 0x49) {
        this.#at = at;
        return this.#word(byte);
      }
    }
    const first = at;
    while (byte >= BYTE.zero && byte <= BYTE.nine) {
      byte = text[++at] as number;
    }
    const digits = at - first;
    if (digits === 0 || (digits > 1 && text[first] === BYTE.zero)) {
      this.#at = digits === 0 ? at : first + 1;
      throw this.#unexpected();
    }
    let kind: number = digits > MAX_SAFE_DIGITS ? KIND.wide : KIND.integer;
    let isLarge = digits > MAX_SAFE_DIGITS;
    if (byte === BYTE.dot) {
      kind = KIND.fraction;
      const begin = ++at;
      byte = text[at] as number;
      while (byte >= BYTE.zero && byte <= BYTE.nine) {
        byte = text[++at] as number;
      }
      if (at === begin) {
        this.#at = at;
        throw this.#unexpected();
      }
    }
    if (byte === 0x65 || byte === 0x45) {
      kind = KIND.fraction;
      byte = text[++at] as number;
      if (byte === BYTE.plus || byte === BYTE.minus) {
        byte = text[++at] as number;
      }
      const begin = at;
      while (byte >= BYTE.zero && byte <= BYTE.nine) {
        byte = text[++at] as number;
      }
      if (at === begin) {
        this.#at = at;
        throw this.#unexpected();
      }
      isLarge = isLarge || at - begin > 2;
    }
    this.#at = at;
    if (isLarge && this.#inexact === undefined) {
      const token = textBetween(text, start, at);
      this.#inexact = isExact(token) ? undefined : token;
    }
    return kind;
  }

  #string(): void {
    if (!this.#isStrict) {
      this.#skipString();
      return;
    }
    const text = this.#text;
    let at = this.#at + 1;
    for (;;) {
      const byte = text[at];
      if (byte === BYTE.quote) {
        this.#at = at + 1;
        return;
      }
      if (byte === undefined || byte < 0x20) {
        this.#at = at;
        throw this.#unexpected();
      }
      if (byte !== BYTE.backslash) {
        at++;
        continue;
      }
      const escaped = text[at + 1] as number;
      const isUnicode = escaped === BYTE.u && HEX.test(textBetween(text, at + 2, at + 6));
      if (!isUnicode && !ESCAPES.has(escaped)) {
        this.#at = at + 1;
        throw this.#unexpected();
      }
      at += isUnicode ? 6 : 2;
    }
  }

  /** Goes to the end of a string; that of a long one is searched for by the system's own means. */
  #skipString(): void {
    const text = this.#text;
    let at = this.#at + 1;
    for (const near = at + LONG_STRING_BYTES; at < near; at++) {
      const byte = text[at];
      if (byte === BYTE.quote || byte === undefined) {
        this.#at = at + 1;
        return;
      }
      at += byte === BYTE.backslash ? 1 : 0;
    }
    for (;;) {
      const quote = text.indexOf(BYTE.quote, at);
      let first = quote;
      while (first > at && text[first - 1] === BYTE.backslash) {
        first--;
      }
      // A backslash escapes what follows, so an even number of them escape each other.
      if (quote === -1 || (quote - first) % 2 === 0) {
        this.#at = quote === -1 ? text.length : quote + 1;
        return;
      }
      at = quote + 1;
    }
  }

  #word(byte: number): number {
    const found = WORDS[byte];
    if (found === undefined) {
      throw this.#unexpected();
    }
    const [word, kind] = found;
    for (let index = 0; index < word.length; index++) {
      if (this.#text[this.#at + index] !== word.charCodeAt(index)) {
        throw this.#unexpected();
      }
    }
    if (kind === KIND.constant && !this.#constants) {
      const message = `is not valid JSON: ${word} at byte ${this.#at} is no number of JSON; send null, or leave it out`;
      throw new JsonFault(message, true);
    }
    this.#hasConstants ||= kind === KIND.constant;
    this.#at += word.length;
    return kind;
  }

  #space(): void {
    const text = this.#text;
    let at = this.#at;
    for (;;) {
      const byte = text[at];
      if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) {
        break;
      }
      at++;
    }
    this.#at = at;
  }

  #refuseDeep(depth: number): void {
    if (depth > MAX_JSON_DEPTH) {
      throw new JsonFault(`is nested deeper than ${MAX_JSON_DEPTH} levels`, false);
    }
  }

  #unexpected(): JsonFault {
    const at = this.#at;
    const found =
      at < this.#text.length
        ? `unexpected ${JSON.stringify(textBetween(this.#text, at, at + 1))} at byte ${at}`
        : `it ends at byte ${at}, before its end`;
    return new JsonFault(`is not valid JSON: ${found}`, true);
  }
}

/** Whether a double holds the number, or is what a double is written as. */
function isExact(token: string): boolean {
  const value = Number(token);
  if (!Number.isFinite(value)) {
    return false;
  }
  const isInteger = /^-?\d+$/.test(token);
  return !isInteger || String(value) === token || BigInt(token) === BigInt(value);
}
