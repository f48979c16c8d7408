/** Cryptographically random text over an alphabet, without bias. */
import { randomFillSync } from "node:crypto";

/** In ASCII order, so that numbers written in it sort. */
export const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Random bytes drawn at once, for many characters of tokens and codes. */
const RANDOM_POOL_BYTES = 1_024;

/**
 * Creates a generator of uniformly random text over an alphabet of at most 256
 * characters. It uses rejection sampling: a byte beyond the last whole multiple
 * of the alphabet's length is discarded, because a modulo would favour the
 * first characters.
 */
export function createRandomText(alphabet: string): (length: number) => string {
  const limit = 256 - (256 % alphabet.length);
  const pool = new Uint8Array(RANDOM_POOL_BYTES);
  let used = pool.length;
  return (length) => {
    let text = "";
    while (text.length < length) {
      if (used === pool.length) {
        randomFillSync(pool);
        used = 0;
      }
      const byte = pool[used] ?? 255;
      // Bytes of a secret do not stay in the pool.
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
