import { randomBytes } from "node:crypto";

/** Drawn at once: one by one they would cost a tenth of a submit. */
const TEXTS_PER_DRAW = 512;

/** Makes texts of random hexadecimal digits: two for each byte. */
export function createDigitSource(bytes: number): () => string {
  const length = 2 * bytes;
  let digits = "";
  let used = 0;
  return () => {
    if (used === digits.length) {
      digits = randomBytes(TEXTS_PER_DRAW * bytes).toString("hex");
      used = 0;
    }
    used += length;
    return digits.slice(used - length, used);
  };
}
