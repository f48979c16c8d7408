import { stripVTControlCharacters } from "node:util";

/** Text of others, such as a token's name, without what could steer a terminal. */
export function plain(text: string): string {
  return stripVTControlCharacters(text).replace(/[\p{Cc}\p{Bidi_Control}]+/gu, " ");
}
