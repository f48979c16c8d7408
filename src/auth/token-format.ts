/**
 * The token format: `tsr`, a letter for the kind, `_`, 30 random characters of
 * base62 (178 bits), and a checksum of 6: the CRC-32 of everything before, in
 * base62 with the most significant digit first. A token has 41 characters, is
 * selected by a double click, and is found in leaked text by `TOKEN_PATTERN`.
 *
 * The checksum keeps typing errors, and other text that begins like a token,
 * from the database. It is not a protection: anyone can compute it.
 */
import { crc32 } from "node:zlib";
import { BASE62, randomBase62 } from "./random.ts";

/** Personal, organization, monitoring. */
export type TokenLetter = "p" | "o" | "m";

/** For secret scanners. A match is a token if its checksum is right. */
export const TOKEN_PATTERN = /\btsr[pom]_[0-9A-Za-z]{36}\b/;

const WHOLE = /^tsr([pom])_[0-9A-Za-z]{36}$/;
const RANDOM_LENGTH = 30;
const CHECKSUM_LENGTH = 6;
const HINT_LENGTH = 9;
export const TOKEN_LENGTH = "tsrp_".length + RANDOM_LENGTH + CHECKSUM_LENGTH;

/** Creates the value of a new token. */
export function createTokenValue(letter: TokenLetter): string {
  const body = `tsr${letter}_${randomBase62(RANDOM_LENGTH)}`;
  return body + checksum(body);
}

/**
 * Parses a value into its letter and its hint, the prefix by which people tell
 * tokens apart, such as `tsro_4fQx`; undefined when it is not a token.
 */
export function parseTokenValue(
  text: string,
): { readonly letter: TokenLetter; readonly hint: string } | undefined {
  if (text.length !== TOKEN_LENGTH) {
    return undefined;
  }
  const letter = WHOLE.exec(text)?.[1];
  const end = TOKEN_LENGTH - CHECKSUM_LENGTH;
  return letter !== undefined && checksum(text.slice(0, end)) === text.slice(end)
    ? { letter: letter as TokenLetter, hint: text.slice(0, HINT_LENGTH) }
    : undefined;
}

function checksum(text: string): string {
  let rest = crc32(text);
  let digits = "";
  for (let index = 0; index < CHECKSUM_LENGTH; index += 1) {
    digits = (BASE62[rest % BASE62.length] ?? "") + digits;
    rest = Math.floor(rest / BASE62.length);
  }
  return digits;
}
