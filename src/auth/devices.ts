/**
 * How a browser shows that a person has signed in in it before: a cookie of
 * half a year that stays when they sign out. It is sealed for their account
 * and opens nothing; attempts to sign in that bring it are counted apart from
 * those of strangers (sign-in-throttle.ts).
 *
 * It is good for as long as the password is that it was given for. Whoever
 * knew a password may have collected any number of cookies, and with each they
 * could guess at the next one.
 */

import { createHash } from "node:crypto";
import { cookieValues } from "./cookies.ts";
import type { KeyRing } from "./keys.ts";
import { randomBase62 } from "./random.ts";

const PLAIN_NAME = "tessera_device";
const LIFETIME_MS = 180 * 24 * 3_600_000;
const ID_LENGTH = 16;

/** A sealed id, time and digest, and some more. */
const MAX_LENGTH = 300;

export interface DeviceOptions {
  readonly keys: Pick<KeyRing, "seal" | "unseal">;
  /** The e-mail address of the account. */
  readonly account: string;
  readonly secure: boolean;
  readonly nowMs: number;
}

/** A browser in which somebody has proved to know the password. */
export interface Device {
  readonly id: string;
  /** As it is stored. */
  readonly passwordHash: string;
}

/**
 * The id of a browser that is known for this account, in a `Cookie` header.
 *
 * @param currentHash finds the hash of the account's password; asked only
 * where there is a cookie of the account, so not for strangers
 */
export async function readDeviceCookie(
  header: string | null | undefined,
  options: DeviceOptions,
  currentHash: () => Promise<string | undefined>,
): Promise<string | undefined> {
  const [id, madeAtMs, password] = unsealed(header, options);
  if (id === undefined || !(Number(madeAtMs) + LIFETIME_MS > options.nowMs)) {
    return undefined;
  }
  const hash = await currentHash();
  return hash !== undefined && digestOf(hash) === password ? id : undefined;
}

/** What an account's cookie holds; nothing where there is none. */
function unsealed(
  header: string | null | undefined,
  { keys, account, secure }: DeviceOptions,
): string[] {
  const [sealed] = cookieValues(header, nameOf(secure));
  if (!sealed || sealed.length > MAX_LENGTH) {
    return [];
  }
  try {
    return keys.unseal(sealed, contextOf(account)).split(" ");
  } catch {
    // Of another account or platform, or of keys that are gone: a browser like any other.
    return [];
  }
}

export function newDeviceId(): string {
  return randomBase62(ID_LENGTH);
}

/** The `Set-Cookie` header by which a browser is known from now on. */
export function writeDeviceCookie({ id, passwordHash }: Device, options: DeviceOptions): string {
  const { keys, account, secure, nowMs } = options;
  const text = `${id} ${nowMs} ${digestOf(passwordHash)}`;
  const expires = new Date(nowMs + LIFETIME_MS).toUTCString();
  const attributes = `Path=/; Expires=${expires}; HttpOnly; SameSite=Lax`;
  const pair = `${nameOf(secure)}=${keys.seal(text, contextOf(account))}`;
  return `${pair}; ${attributes}${secure ? "; Secure" : ""}`;
}

function nameOf(secure: boolean): string {
  return secure ? `__Host-${PLAIN_NAME}` : PLAIN_NAME;
}

/** Another one for each password that is chosen, also for the same text: hashes are salted. */
function digestOf(passwordHash: string): string {
  return createHash("sha256").update(passwordHash).digest("base64url");
}

function contextOf(account: string): string {
  return `sign-in device of ${account}`;
}
