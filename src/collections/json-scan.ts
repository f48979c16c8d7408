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
import { type JsonShape, KIND, type MemberShapes } from "./json-kinds.ts";
import { type NumberArray, readNumberArray } from "./number-array.ts";

/**
 * JSON in JSON: deeper than anybody writes, and shallow enough for every recursive reader of a
 * message.
 */
export const MAX_JSON_DEPTH = 200;

/** Length from which the end of a string is searched for by the system's own means. */
const LONG_STRING_BYTES = 64;

/** Digits of an integer that is exact in every language. */
const MAX_SAFE_DIGITS = 15;

/** Where a value stands, and what it is made of. */
interface Scanned {
  readonly start: number;
  readonly end: number;
  /** Whether a shape was asked for, and the value has it. One that has not may be right all the same. */
  readonly isFit: boolean;
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
  /** Its doubles, where they were asked for and it is such an array. */
  readonly array?: NumberArray;
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
  /** What the members of the object are to be, by name. */
  readonly shapes?: ReadonlyMap<string, JsonShape> | undefined;
  /** What the value itself is to be. */
  readonly shape?: JsonShape | undefined;
  /** The members of the object that are read as arrays of numbers where they can be; they may be anything. */
  readonly arrays?: ReadonlySet<string> | undefined;
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
  return new JsonScan(text, options.constants ?? false).whole(options);
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
  #isFit = true;

  constructor(text: Uint8Array, constants: boolean, isStrict = true) {
    this.#text = text;
    this.#constants = constants;
    this.#isStrict = isStrict;
  }

  whole({
    elements: withElements = false,
    shapes,
    shape,
    arrays,
  }: JsonScanOptions = {}): ScannedJson {
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
      if (isObject) {
        this.#object(1, undefined, (name) => {
          const array = arrays?.has(name) ? readNumberArray(this.#text, this.#at) : undefined;
          members.push(
            array === undefined
              ? { ...this.#measured(1, shapes?.get(name)), name }
              : { ...this.#passed(array), name, array },
          );
        });
      } else {
        this.#elements((element) => elements.push(element));
      }
      const { values } = this;
      whole = {
        start,
        end: this.#at,
        isFit: isObject && shape?.members === undefined && ((shape?.kinds ?? 0) & KIND.object) > 0,
        objects: this.#objects,
        values,
        inexact: [...members, ...elements].find(({ inexact }) => inexact !== undefined)?.inexact,
        hasConstants: [...members, ...elements].some(({ hasConstants }) => hasConstants),
      };
    } else {
      whole = this.#measured(0, shape);
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

  /** Goes behind an array that was read. */
  #passed({ end, numbers }: NumberArray): Scanned {
    const start = this.#at;
    this.#at = end;
    this.values += numbers.length;
    this.#objects++;
    const known = { isFit: true, inexact: undefined, hasConstants: false };
    return { start, end, objects: 1, values: numbers.length, ...known };
  }

  /** A value with what it is made of. */
  #measured(depth: number, shape?: JsonShape): Scanned {
    const { values } = this;
    const objects = this.#objects;
    this.#isFit = shape !== undefined;
    this.#inexact = undefined;
    this.#hasConstants = false;
    const start = this.#at;
    this.#value(depth, shape);
    return {
      start,
      end: this.#at,
      isFit: this.#isFit,
      objects: this.#objects - objects,
      values: this.values - values,
      inexact: this.#inexact,
      hasConstants: this.#hasConstants,
    };
  }

  /** Reads a value, and notes whether it has a shape. Returns its kind. */
  #value(depth: number, shape: JsonShape | undefined): number {
    const kind = this.#kind(depth, shape);
    this.#isFit &&= shape === undefined || (kind & shape.kinds) !== 0;
    return kind;
  }

  #kind(depth: number, shape: JsonShape | undefined): number {
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
      this.#array(depth + 1, shape);
      return KIND.array;
    }
    if (byte === BYTE.openObject) {
      this.#objects++;
      this.#object(depth + 1, shape?.members);
      return KIND.object;
    }
    return this.#word(byte);
  }

  #array(depth: number, shape: JsonShape | undefined): void {
    this.#refuseDeep(depth);
    const text = this.#text;
    const items = shape?.items;
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
          kinds |= this.#value(depth, items);
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
    if (shape !== undefined) {
      const { minItems = 0, maxItems = length } = shape;
      const allowed = items === undefined ? kinds : items.kinds;
      this.#isFit &&= length >= minItems && length <= maxItems && (kinds & ~allowed) === 0;
    }
  }

  /** Reads an object; `take` reads the value of each member of the whole text. */
  #object(depth: number, members: MemberShapes | undefined, take?: (name: string) => void): void {
    this.#refuseDeep(depth);
    const text = this.#text;
    let seen = 0;
    // Most objects of a list have their members in one order.
    let next = 0;
    this.#at++;
    this.#space();
    if (text[this.#at] === BYTE.closeObject) {
      this.#at++;
    } else {
      for (;;) {
        const start = this.#at;
        if (text[start] !== BYTE.quote) {
          throw this.#unexpected();
        }
        const index = members === undefined ? -1 : this.#memberAt(members, next);
        let shape: JsonShape | undefined;
        if (members !== undefined && index >= 0) {
          // Of a name that is there twice, only the last value counts, which a parser knows.
          this.#isFit &&= (seen & (1 << index)) === 0;
          seen |= 1 << index;
          next = index + 1;
          shape = members.named[index]?.shape;
        } else {
          this.#string();
          shape = members?.others;
          if (members !== undefined) {
            // One that is written with escapes may be that of any member.
            const isPlain = text.subarray(start, this.#at).indexOf(BYTE.backslash) < 0;
            this.#isFit &&= shape !== undefined && isPlain;
          }
        }
        const nameEnd = this.#at;
        this.#space();
        if (text[this.#at] !== BYTE.colon) {
          throw this.#unexpected();
        }
        this.#at++;
        this.#space();
        this.#objects++;
        if (take === undefined) {
          this.#value(depth, shape);
        } else {
          take(this.#isStrict ? JSON.parse(textBetween(text, start, nameEnd)) : "");
        }
        this.#space();
        const end = text[this.#at];
        if (end !== BYTE.comma && end !== BYTE.closeObject) {
          throw this.#unexpected();
        }
        this.#at++;
        if (end === BYTE.closeObject) {
          break;
        }
        this.#space();
      }
    }
    if (members !== undefined && (seen & members.required) !== members.required) {
      this.#isFit = false;
    }
  }

  /** Goes behind the name that stands here, and returns its index; -1 for one that no member has. */
  #memberAt({ named }: MemberShapes, expected: number): number {
    for (let tried = 0; tried < named.length; tried++) {
      const index = (expected + tried) % named.length;
      const quoted = named[index]?.quoted;
      if (quoted !== undefined && this.#stands(quoted)) {
        this.#at += quoted.length;
        return index;
      }
    }
    return -1;
  }

  #stands(word: Uint8Array): boolean {
    const text = this.#text;
    const at = this.#at;
    for (let index = word.length - 1; index > 0; index--) {
      if (text[at + index] !== word[index]) {
        return false;
      }
    }
    return true;
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
