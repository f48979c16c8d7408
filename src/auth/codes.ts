import { hash } from "node:crypto";
import { createRandomText, randomBase62 } from "./random.ts";

/** 43 characters of base62 hold 256 bits. */
const CODE = /^[0-9A-Za-z]{43}$/;
const CODE_LENGTH = 43;

/** 20 consonants: no word comes about, and none is taken for another or for a digit. */
const USER_CODE_LETTERS = "BCDFGHJKLMNPQRSTVWXZ";
const USER_CODE = /^[BCDFGHJKLMNPQRSTVWXZ]{8}$/;

const randomLetters = createRandomText(USER_CODE_LETTERS);

/** Makes a secret for a session, a setup link, an invitation or a login. */
export function createCode(): string {
  return randomBase62(CODE_LENGTH);
}

/** Whether text could be a code: anything else is not looked up. */
export function isCode(text: string): boolean {
  return CODE.test(text);
}

/** How a code is kept: SHA-256 in base64url. A code is too long to be guessed from it. */
export function digestCode(code: string): string {
  return hash("sha256", code, "base64url");
}

/**
 * Makes a code that a person types (RFC 8628, section 6.1), such as
 * `BCDF-GHJK`. With 35 bits it is short: it is kept as the key ring's
 * `digestUserCode`, for a few minutes, and attempts at it are limited.
 */
export function createUserCode(): string {
  return grouped(randomLetters(8));
}

/** A code as it was typed, written as it was shown; undefined for what cannot be one. */
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
