import { randomFillSync } from "node:crypto";

/** In the order of ASCII, so that numbers written in it sort. */
export const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Random bytes are drawn for many characters at once. */
const POOL_BYTES = 1_024;

/**
 * Makes a source of random text over an alphabet of at most 256 characters,
 * each as likely as the others: a byte beyond the last whole multiple of the
 * alphabet's length is thrown away, because folding it back would favour the
 * first characters.
 */
export function createRandomText(alphabet: string): (length: number) => string {
  const limit = 256 - (256 % alphabet.length);
  const pool = new Uint8Array(POOL_BYTES);
  let used = pool.length;
  return (length) => {
    let text = "";
    while (text.length < length) {
      if (used === pool.length) {
        randomFillSync(pool);
        used = 0;
      }
      const byte = pool[used] ?? 255;
      // What has become part of a secret stays in no pool.
      pool[used] = 0;
      used += 1;
      if (byte < limit) {
        text += alphabet[byte % alphabet.length];
      }
    }
    return text;
  };
}

/** Random text of digits and letters. */
export const randomBase62 = createRandomText(BASE62);
