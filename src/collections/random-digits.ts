import { randomBytes } from "node:crypto";

/** Drawn at once: one by one they would cost a tenth of a submit. */
const TEXTS_PER_DRAW = 512;

/**
 * Makes texts of so many random hexadecimal digits.
 *
 * @param finish what becomes of many of them, one after the other, before they are cut apart.
 */
export function createDigitSource(
  length: number,
  finish = (digits: string): string => digits,
): () => string {
  let digits = "";
  let used = 0;
  return () => {
    if (used === digits.length) {
      digits = finish(randomBytes((TEXTS_PER_DRAW * length) / 2).toString("hex"));
      used = 0;
    }
    used += length;
    return digits.slice(used - length, used);
  };
}
