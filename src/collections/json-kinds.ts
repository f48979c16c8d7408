/** What the values of JSON are, and what they may be: what a scan of it tells and looks for. */

/** What a value is, as bits: a shape may allow several kinds. */
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

/** What a value may be. What is not said is not checked. */
export interface JsonShape {
  /** Bits of `KIND`. */
  readonly kinds: number;
  /** Of an array. */
  readonly items?: JsonShape;
  readonly minItems?: number;
  readonly maxItems?: number;
  /** Of an object. */
  readonly members?: MemberShapes;
}

/** What an object may have. */
export interface MemberShapes {
  /** At most `MAX_NAMED_MEMBERS`. */
  readonly named: readonly {
    /** The name as JSON has it, in its quotes. */
    readonly quoted: Uint8Array;
    readonly shape: JsonShape;
  }[];
  /** Those that have to be there, as bits by their index. */
  readonly required: number;
  /** All others; undefined where there may be none. */
  readonly others: JsonShape | undefined;
}

/** Members that one number has a bit for each of. */
export const MAX_NAMED_MEMBERS = 30;
