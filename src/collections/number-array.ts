/**
 * Reads an array of numbers out of JSON as doubles: nested lists of equal lengths, such as
 * `[[0.5, 1], [2, 3]]`, with their shape. What a program in another language makes of the text,
 * an object for each number and a list of them, costs it several times as much.
 *
 * It takes only what every reader makes the same doubles of, and no more memory than the text has.
 * Everything else (`undefined`) is for the scan of JSON, which says what is wrong with it, and for
 * the reader of the text: lists of different lengths, whole numbers alone, null, NaN, what is
 * beyond the integers of 64 bits, zeros with a sign, short numbers, short rows.
 */

/** An array, and where its text ends. */
export interface NumberArray {
  readonly numbers: Float64Array<ArrayBuffer>;
  /** The lengths of its lists, from the outermost to the innermost. */
  readonly shape: readonly number[];
  readonly end: number;
}

/** Dimensions of an array; one that has more is left to the reader of the text. */
const MAX_DIMENSIONS = 8;

/** Numbers of an innermost list; arrays with shorter ones are left to the reader of the text, because each list is parsed by itself. */
const MIN_ROW_NUMBERS = 8;

/** Bytes that are parsed at once, so that what is made of them dies young. */
const PIECE_BYTES = 32_768;

/** How much is looked at for a fraction before anything is read: integers alone are left to others. */
const BEGINNING_BYTES = 256;

/** A beginning with numbers, of which one has a fraction. */
const FRACTION = /^[-+\d, eE]+\.\d/;

/** Integers from here on are no integers of 64 bits. */
const MAX_INTEGER = 2 ** 63;

const BYTE = { comma: 0x2c, space: 0x20, open: 0x5b, close: 0x5d } as const;

/** The array that begins at a place of a text in bytes; undefined for what it does not take. */
export function readNumberArray(text: Uint8Array, at: number): NumberArray | undefined {
  return text[at] === BYTE.open ? new ArrayReading(text, at).read() : undefined;
}

class ArrayReading {
  readonly #text: Buffer;
  readonly #begin: number;
  #room = new Float64Array(0);
  #at: number;
  #count = 0;
  /** Whether every reader sees that these are no integers. */
  #hasFraction = false;

  constructor(text: Uint8Array, at: number) {
    this.#text = Buffer.from(text.buffer, text.byteOffset, text.byteLength);
    this.#begin = at;
    this.#at = at;
  }

  read(): NumberArray | undefined {
    const text = this.#text;
    const depth = this.#opened();
    const beginning = text.toString("latin1", this.#at, this.#at + BEGINNING_BYTES);
    if (depth > MAX_DIMENSIONS || !FRACTION.test(beginning)) {
      return undefined;
    }
    /** The lengths of lists that have ended, and how much there is of those that are open. */
    const shape: number[] = new Array(depth).fill(0);
    const seen: number[] = new Array(depth).fill(0);
    for (;;) {
      const before = this.#count;
      if (!this.#row()) {
        return undefined;
      }
      seen[depth - 1] = this.#count - before;
      let level = depth - 1;
      for (;;) {
        const length = seen[level] as number;
        shape[level] ||= length;
        if (shape[level] !== length || (level === depth - 1 && length < MIN_ROW_NUMBERS)) {
          return undefined;
        }
        if (level === 0) {
          return this.#ended(shape);
        }
        seen[level] = 0;
        level--;
        seen[level] = (seen[level] as number) + 1;
        if (text[this.#at] !== BYTE.close) {
          break;
        }
        this.#at++;
      }
      if (text[this.#at] !== BYTE.comma) {
        return undefined;
      }
      this.#at += text[this.#at + 1] === BYTE.space ? 2 : 1;
      if (this.#opened() !== depth - 1 - level) {
        return undefined;
      }
    }
  }

  /** Goes behind brackets that open, and returns how many they are. */
  #opened(): number {
    const begin = this.#at;
    while (this.#text[this.#at] === BYTE.open) {
      this.#at++;
    }
    return this.#at - begin;
  }

  /** Reads the numbers of an innermost list, and goes behind its end. */
  #row(): boolean {
    const text = this.#text;
    const end = text.indexOf(BYTE.close, this.#at);
    this.#reserve(this.#count + Math.ceil((end - this.#at) / 8));
    while (this.#at <= end) {
      const far = this.#at + PIECE_BYTES;
      const cut = far >= end ? end : text.lastIndexOf(BYTE.comma, far);
      const piece = text.toString("latin1", this.#at, Math.max(this.#at, cut));
      this.#at = Math.max(this.#at, cut) + 1;
      if (!this.#take(parsed(`[${piece}]`))) {
        return false;
      }
    }
    return end >= 0;
  }

  /** Makes room for this number of values. The room grows with what was read, so that repeating a member costs no more. */
  #reserve(count: number): void {
    if (count > this.#room.length) {
      const grown = new Float64Array(Math.max(count, 2 * this.#room.length));
      grown.set(this.#room.subarray(0, this.#count));
      this.#room = grown;
    }
  }

  #take(numbers: readonly unknown[]): boolean {
    const count = this.#count;
    const { length } = numbers;
    if (length === 0 || (count + length) * 8 > this.#at - this.#begin) {
      return false;
    }
    this.#reserve(count + length);
    const room = this.#room;
    // By index: an iterator costs as much as the parser.
    for (let index = 0; index < length; index++) {
      const number = numbers[index];
      const isSame =
        typeof number === "number" &&
        number < MAX_INTEGER &&
        number > -MAX_INTEGER &&
        !Object.is(number, -0);
      if (!isSame) {
        return false;
      }
      this.#hasFraction ||= !Number.isInteger(number);
      room[count + index] = number;
    }
    this.#count = count + length;
    return true;
  }

  #ended(shape: readonly number[]): NumberArray | undefined {
    if (!this.#hasFraction) {
      return undefined;
    }
    const { buffer } = this.#room;
    const numbers = new Float64Array(buffer.transfer(this.#count * 8));
    return { numbers, shape, end: this.#at };
  }
}

function parsed(text: string): readonly unknown[] {
  try {
    return JSON.parse(text);
  } catch {
    return [];
  }
}
