/**
 * JSON whose numbers stay as they are written: `9007199254740993` and `1.0` are no doubles. A
 * value that is parsed here has what a double would change as raw JSON, which `JSON.stringify`
 * writes as it was. It is for programs that pass JSON on, or show it, and do not reckon with it.
 */

/** The parts of JSON that TypeScript's library does not have yet: https://tc39.es/ecma262/#sec-json.rawjson */
interface ExactJson {
  rawJSON(text: string): object;
  isRawJSON(value: unknown): boolean;
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown;
}

const { rawJSON, isRawJSON, parse } = JSON as unknown as Partial<ExactJson> &
  Pick<ExactJson, "parse">;

/** Parses a text for `JSON.stringify`, which gives the same numbers back. Throws a `SyntaxError`. */
export function parseExactly(text: string): unknown {
  return parse(text, (_key, value, { source }) =>
    // Older browsers have no raw JSON; there the numbers are doubles.
    typeof value === "number" && source !== undefined && String(value) !== source
      ? (rawJSON?.(source) ?? value)
      : value,
  );
}

/** True for a number that `parseExactly` has kept as it was written; it is an object otherwise. */
export const isExactNumber = (value: unknown): boolean => isRawJSON?.(value) ?? false;

/** Numbers that Python writes and JSON does not have, and strings, in which they are text. */
const CONSTANTS = /"(?:[^"\\]|\\.)*"|NaN|-?Infinity/g;

/**
 * Parses what a worker takes or gives, which may be as Python writes it: `NaN` and the infinities
 * are null then, and `isExact` is false. Throws a `SyntaxError`.
 */
export function parseLenient(text: string): { readonly value: unknown; readonly isExact: boolean } {
  try {
    return { value: JSON.parse(text), isExact: true };
  } catch {
    const plain = text.replaceAll(CONSTANTS, (found) => (found.startsWith('"') ? found : "null"));
    return { value: JSON.parse(plain), isExact: false };
  }
}

/** A replacer for `JSON.stringify` that writes a `bigint` as the number that it is. */
export function writeBigInt(_key: string, value: unknown): unknown {
  return typeof value === "bigint" && rawJSON !== undefined ? rawJSON(String(value)) : value;
}
