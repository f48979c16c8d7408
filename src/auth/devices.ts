/**
 * Device cookies: they show that a person has signed in in this browser before.
 * Such a cookie lasts half a year and survives signing out. It is sealed for
 * one account and grants no access; the sign-in throttle counts attempts with
 * it apart from those of strangers (sign-in-throttle.ts).
 *
 * A cookie is valid only for the password that it was issued for. Otherwise
 * somebody who knew an old password could have collected any number of cookies,
 * each worth more guesses at the next password.
 */

import { createHash } from "node:crypto";
import { cookieValues } from "./cookies.ts";
import type { KeyRing } from "./keys.ts";
import { randomBase62 } from "./random.ts";

const PLAIN_NAME = "tessera_device";
/** How long the cookie of a known browser is valid. */
const DEVICE_COOKIE_LIFETIME_MS = 180 * 24 * 3_600_000;
const ID_LENGTH = 16;

/** Cookie of a known browser: a sealed id, time and digest, with some room. */
const MAX_DEVICE_COOKIE_CHARACTERS = 300;

export interface DeviceOptions {
  readonly keys: Pick<KeyRing, "seal" | "unseal">;
  /** The e-mail address of the account. */
  readonly account: string;
  readonly secure: boolean;
  readonly nowMs: number;
}

/** A browser in which a person has authenticated by password. */
interface Device {
  readonly id: string;
  /** The stored password hash. */
  readonly passwordHash: string;
}

/**
 * Reads the id of a browser that is known for this account from a `Cookie`
 * header; undefined for any other.
 *
 * @param currentHash finds the hash of the account's password; called only when
 * the header has a cookie of the account, so not for strangers
 */
export async function readDeviceCookie(
  header: string | null | undefined,
  options: DeviceOptions,
  currentHash: () => Promise<string | undefined>,
): Promise<string | undefined> {
  const [id, madeAtMs, password] = unsealed(header, options);
  if (id === undefined || !(Number(madeAtMs) + DEVICE_COOKIE_LIFETIME_MS > options.nowMs)) {
    return undefined;
  }
  const hash = await currentHash();
  return hash !== undefined && digestOf(hash) === password ? id : undefined;
}

/** Opens the account's cookies; empty when the header has no valid one. */
function unsealed(
  header: string | null | undefined,
  { keys, account, secure }: DeviceOptions,
): string[] {
  const [sealed] = cookieValues(header, nameOf(secure));
  if (!sealed || sealed.length > MAX_DEVICE_COOKIE_CHARACTERS) {
    return [];
  }
  try {
    return keys.unseal(sealed, contextOf(account)).split(" ");
  } catch {
    // Sealed for another account or platform, or under a removed key: an unknown
    // browser.
    return [];
  }
}

export function newDeviceId(): string {
  return randomBase62(ID_LENGTH);
}

/** Returns the `Set-Cookie` header that makes a browser known. */
export function writeDeviceCookie({ id, passwordHash }: Device, options: DeviceOptions): string {
  const { keys, account, secure, nowMs } = options;
  const text = `${id} ${nowMs} ${digestOf(passwordHash)}`;
  const expires = new Date(nowMs + DEVICE_COOKIE_LIFETIME_MS).toUTCString();
  const attributes = `Path=/; Expires=${expires}; HttpOnly; SameSite=Lax`;
  const pair = `${nameOf(secure)}=${keys.seal(text, contextOf(account))}`;
  return `${pair}; ${attributes}${secure ? "; Secure" : ""}`;
}

function nameOf(secure: boolean): string {
  return secure ? `__Host-${PLAIN_NAME}` : PLAIN_NAME;
}

/** Differs for each chosen password, even for the same text, because hashes are salted. */
function digestOf(passwordHash: string): string {
  return createHash("sha256").update(passwordHash).digest("base64url");
}

function contextOf(account: string): string {
  return `sign-in device of ${account}`;
}
