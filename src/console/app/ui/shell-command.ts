/** The parts of the shell commands that pages show. */

export const BEARER = '-H "authorization: Bearer $TESSERA_TOKEN"';

/** One part a line. */
export const lines = (...parts: readonly string[]): string => parts.filter(Boolean).join(" \\\n  ");

/** A word of a POSIX shell. */
export const quote = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
