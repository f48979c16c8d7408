/**
 * Sessions of people who are signed in: a random code in a cookie, of which
 * only the digest is stored.
 *
 * The cookie is `HttpOnly` (no script reads it), `SameSite=Lax` (no page of
 * another site sends it with what changes something) and for this host alone.
 *
 * Where the platform is reached by https it is `Secure`, too, and its name
 * begins with `__Host-`, by which browsers let nobody but this very host set
 * it: no other host of the domain, and nobody who answers on port 80
 * (https://www.rfc-editor.org/rfc/rfc6265bis, section 4.1.3.2). Over http there is
 * no such protection, and clients that are no browsers would not send a
 * `Secure` cookie, so there it has its plain name. Only the name that goes
 * with the scheme counts.
 */
import type { NewSession } from "../storage/accounts/people.ts";
import { createIdSource } from "../tasks/id.ts";
import { createCode, digestCode, isCode } from "./codes.ts";
import { cookieValues } from "./cookies.ts";

const PLAIN_NAME = "tessera_session";

/** What the session's cookie is called. */
export function sessionCookieName(secure: boolean): string {
  return secure ? `__Host-${PLAIN_NAME}` : PLAIN_NAME;
}

/** A session ends this long after it was opened, however much it was used. */
export const SESSION_LIFETIME_MS = 14 * 24 * 3_600_000;

const newId = createIdSource();

/**
 * The session's code in a `Cookie` header;
 * undefined when there is none. Of two with the name neither counts: another
 * host of the same domain may have set one of them to make a person act in a
 * session that is not theirs.
 *
 * @param secure whether the platform is reached by https.
 */
export function readSessionCookie(header: string | undefined, secure: boolean): string | undefined {
  if (header === undefined || !header.includes(PLAIN_NAME)) {
    return undefined;
  }
  const values = cookieValues(header, sessionCookieName(secure));
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
  return `${sessionCookieName(secure)}=${value}; ${attributes}${secure ? "; Secure" : ""}`;
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
