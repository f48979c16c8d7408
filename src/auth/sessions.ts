/**
 * Sessions of people who are signed in: a random code in a cookie, of which
 * only the digest is stored.
 *
 * The cookie is `HttpOnly` (no script reads it), `SameSite=Lax` (no page of
 * another site sends it with what changes something), for this host alone,
 * and `Secure` where the platform is reached by https.
 */
import type { NewSession } from "../storage/accounts/people.ts";
import { createIdSource } from "../tasks/id.ts";
import { createCode, digestCode, isCode } from "./codes.ts";

export const SESSION_COOKIE = "tessera_session";

/** A session ends this long after it was opened, however much it was used. */
export const SESSION_LIFETIME_MS = 14 * 24 * 3_600_000;

const newId = createIdSource();

/**
 * The session's code in a `Cookie` header (RFC 6265, section 4.2.1);
 * undefined when there is none. Of two with the name neither counts: another
 * host of the same domain may have set one of them to make a person act in a
 * session that is not theirs.
 */
export function readSessionCookie(header: string | undefined): string | undefined {
  if (header === undefined || !header.includes(SESSION_COOKIE)) {
    return undefined;
  }
  const values = header
    .split(";")
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${SESSION_COOKIE}=`))
    .map((pair) => pair.slice(SESSION_COOKIE.length + 1));
  const [value = ""] = values;
  return values.length === 1 && isCode(value) ? value : undefined;
}

/** The `Set-Cookie` header that gives a browser its session. */
export function writeSessionCookie(
  value: string,
  { secure, expiresAtMs }: { readonly secure: boolean; readonly expiresAtMs: number },
): string {
  const expires = new Date(expiresAtMs).toUTCString();
  const attributes = `Path=/; Expires=${expires}; HttpOnly; SameSite=Lax`;
  return `${SESSION_COOKIE}=${value}; ${attributes}${secure ? "; Secure" : ""}`;
}

/** The `Set-Cookie` header by which a browser forgets its session. */
export function clearSessionCookie({ secure }: { readonly secure: boolean }): string {
  return writeSessionCookie("", { secure, expiresAtMs: 0 });
}

/** Makes a session: the value for the cookie, and what is stored of it. */
export function newSession(
  nowMs: number,
  lifetimeMs = SESSION_LIFETIME_MS,
): { readonly value: string; readonly session: NewSession } {
  const value = createCode();
  return {
    value,
    session: {
      sessionId: newId(),
      digest: digestCode(value),
      expiresAtMs: nowMs + lifetimeMs,
    },
  };
}
