/** The names of uploaded files on disk. */

import { extname } from "node:path";

/** What file systems take for one name. */
const MAX_NAME_BYTES = 255;

/**
 * Controls, breaks of lines, what is half of a letter, and what turns the direction of reading.
 * Joiners are part of the words of Persian and of India's languages, and of emoji.
 */
const NO_LETTERS = /(?![\u200C\u200D])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/**
 * The last part of the name that a caller sent, with letters of all alphabets. What no file can be
 * called is replaced; a name that is too long keeps its extension.
 */
export function uploadName(sent: string): string {
  const last = sent.split(/[/\\]/).at(-1) ?? "";
  const name = last.replaceAll(NO_LETTERS, "_");
  if (name === "" || name === "." || name === "..") {
    return "file";
  }
  const extension = cut(extname(name), Math.floor(MAX_NAME_BYTES / 2));
  const stem = name.slice(0, name.length - extname(name).length);
  return cut(stem, MAX_NAME_BYTES - Buffer.byteLength(extension)) + extension;
}

/** The beginning of a text, in a bounded number of bytes of UTF-8. */
function cut(text: string, most: number): string {
  const bytes = Buffer.alloc(most);
  const { read } = new TextEncoder().encodeInto(text, bytes);
  return text.slice(0, read);
}
