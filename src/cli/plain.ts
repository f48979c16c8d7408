import { stripVTControlCharacters } from "node:util";

/** Strips control characters and escape sequences from foreign text, such as a token's name. */
export function plain(text: string): string {
  return stripVTControlCharacters(text).replace(/[\p{Cc}\p{Bidi_Control}]+/gu, " ");
}
