/** One-time codes: secrets of sessions, links and logins, and the short codes that people type. */
import { hash } from "node:crypto";
import { createRandomText, randomBase62 } from "./random.ts";

/** 43 characters of base62 hold 256 bits. */
const CODE = /^[0-9A-Za-z]{43}$/;
const CODE_LENGTH = 43;

/** 20 consonants: they spell no words, and none is mistaken for another or for a digit. */
const USER_CODE_LETTERS = "BCDFGHJKLMNPQRSTVWXZ";
const USER_CODE = /^[BCDFGHJKLMNPQRSTVWXZ]{8}$/;

const randomLetters = createRandomText(USER_CODE_LETTERS);

/** Creates a random secret of 256 bits for a session, a setup link, an invitation or a login. */
export function createCode(): string {
  return randomBase62(CODE_LENGTH);
}

/** Whether text has the form of a code; anything else is not looked up. */
export function isCode(text: string): boolean {
  return CODE.test(text);
}

/**
 * Digests a code for storage: SHA-256 in base64url. A code has too much entropy
 * to be guessed from its digest.
 */
export function digestCode(code: string): string {
  return hash("sha256", code, "base64url");
}

/**
 * Creates a code that a person types (RFC 8628, section 6.1), such as
 * `BCDF-GHJK`. It has only 35 bits, so it is stored as the key ring's
 * `digestUserCode`, for a few minutes, and attempts are rate-limited.
 */
export function createUserCode(): string {
  return grouped(randomLetters(8));
}

/** Normalizes a typed code to the form in which it was shown; undefined when it cannot be one. */
export function normalizeUserCode(typed: string): string | undefined {
  const letters = typed
    .slice(0, 100)
    .replaceAll(/[\s\p{Dash}_.]/gu, "")
    .toUpperCase();
  return USER_CODE.test(letters) ? grouped(letters) : undefined;
}

function grouped(letters: string): string {
  return `${letters.slice(0, 4)}-${letters.slice(4)}`;
}
