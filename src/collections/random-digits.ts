import { randomBytes } from "node:crypto";

/** Random texts drawn at once: one by one they would cost a tenth of a submit. */
const MAX_TEXTS_PER_DRAW = 512;

/**
 * Returns a source of random texts with `length` hexadecimal digits each.
 *
 * @param finish transforms the digits of a whole draw before they are cut into texts.
 */
export function createDigitSource(
  length: number,
  finish = (digits: string): string => digits,
): () => string {
  let digits = "";
  let used = 0;
  return () => {
    if (used === digits.length) {
      digits = finish(randomBytes((MAX_TEXTS_PER_DRAW * length) / 2).toString("hex"));
      used = 0;
    }
    used += length;
    return digits.slice(used - length, used);
  };
}
