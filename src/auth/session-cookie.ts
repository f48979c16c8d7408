/**
 * Session cookies of people who are signed in: a random code, of which only the
 * digest is stored.
 *
 * The cookie is `HttpOnly` (scripts cannot read it), `SameSite=Lax` (pages of
 * other sites cannot send it with requests that change something) and
 * host-only.
 *
 * Over https it is also `Secure`, and its name begins with `__Host-`: browsers
 * then accept it only from this very host, not from another host of the domain,
 * nor from a server on port 80 (https://www.rfc-editor.org/rfc/rfc6265bis,
 * section 4.1.3.2). Over http no such protection exists, and clients other than
 * browsers would not send a `Secure` cookie, so there it has its plain name.
 * Only the name that matches the scheme counts.
 */
import type { NewSession } from "../storage/accounts/people.ts";
import { createIdSource } from "../tasks/id.ts";
import { cookieValues } from "./cookies.ts";
import { createCode, digestCode, isCode } from "./one-time-codes.ts";

const PLAIN_NAME = "tessera_session";

/** The name of the session cookie. */
export function sessionCookieName(secure: boolean): string {
  return secure ? `__Host-${PLAIN_NAME}` : PLAIN_NAME;
}

/** How long a session lasts after it was opened, however much it is used. */
export const SESSION_LIFETIME_MS = 14 * 24 * 3_600_000;

const newId = createIdSource();

/**
 * Reads the session's code from a `Cookie` header; undefined when it has no
 * session cookie. When two cookies have the name, neither counts: another host
 * of the domain may have set one of them to make a person act in a foreign
 * session.
 *
 * @param secure whether the platform is reached over https.
 */
export function readSessionCookie(header: string | undefined, secure: boolean): string | undefined {
  if (header === undefined || !header.includes(PLAIN_NAME)) {
    return undefined;
  }
  const values = cookieValues(header, sessionCookieName(secure));
  const [value = ""] = values;
  return values.length === 1 && isCode(value) ? value : undefined;
}

/** Returns the `Set-Cookie` header of a new session. */
export function writeSessionCookie(
  value: string,
  { secure, expiresAtMs }: { readonly secure: boolean; readonly expiresAtMs: number },
): string {
  const expires = new Date(expiresAtMs).toUTCString();
  const attributes = `Path=/; Expires=${expires}; HttpOnly; SameSite=Lax`;
  return `${sessionCookieName(secure)}=${value}; ${attributes}${secure ? "; Secure" : ""}`;
}

/** Returns the `Set-Cookie` header that deletes the session cookie. */
export function clearSessionCookie({ secure }: { readonly secure: boolean }): string {
  return writeSessionCookie("", { secure, expiresAtMs: 0 });
}

interface NewSessionOptions {
  /** Default: 14 days. */
  readonly lifetimeMs?: number | undefined;
  /** The `User-Agent` header of the sign-in. */
  readonly userAgent?: string | null | undefined;
}

/** Creates a session: the value for the cookie, and the record to store. */
export function newSession(
  nowMs: number,
  { lifetimeMs = SESSION_LIFETIME_MS, userAgent }: NewSessionOptions = {},
): { readonly value: string; readonly session: NewSession } {
  const value = createCode();
  return {
    value,
    session: {
      sessionId: newId(),
      digest: digestCode(value),
      client: describeClient(userAgent ?? ""),
      expiresAtMs: nowMs + lifetimeMs,
    },
  };
}

/**
 * A short description of the program that signed in, from its `User-Agent`
 * header: words of these tables, and of browsers the number of their version.
 * Whatever else the header holds, nothing of it is stored or shown.
 */

/**
 * The first match names it: most browsers also carry the names of those they descend from. A mark
 * takes the major version, where the program tells its own.
 */
const PROGRAMS: readonly (readonly [mark: RegExp, name: string])[] = [
  [/tessera/, "Tessera client"],
  [/Edg(?:A|iOS)?\/(\d{1,4})/, "Edge"],
  [/OPR\/(\d{1,4})/, "Opera"],
  [/SamsungBrowser\/(\d{1,4})/, "Samsung Internet"],
  [/(?:Firefox|FxiOS)\/(\d{1,4})/, "Firefox"],
  [/(?:Chrome|CriOS)\/(\d{1,4})/, "Chrome"],
  [/Version\/(\d{1,4})[^/]{0,40} (?:Mobile\/\w{1,10} )?Safari\//, "Safari"],
  [/Safari\//, "Safari"],
  [/curl\/(\d{1,4})/, "curl"],
  [/ython/, "Python"],
  [/node/, "Node.js"],
  [/Go-http-client/, "Go"],
];

const SYSTEMS: readonly (readonly [mark: RegExp, name: string])[] = [
  [/iPhone/, "iPhone"],
  [/iPad/, "iPad"],
  [/Android/, "Android"],
  [/CrOS/, "ChromeOS"],
  [/Windows/, "Windows"],
  [/Mac OS X/, "macOS"],
  [/Linux/, "Linux"],
];

/** Characters of the header that are looked at. */
const MAX_USER_AGENT_CHARACTERS = 512;

/** Returns `Firefox 140 on Linux`, `Node.js`, or an empty text for what it does not know. */
export function describeClient(userAgent: string): string {
  const header = userAgent.slice(0, MAX_USER_AGENT_CHARACTERS);
  const nameIn = (table: typeof PROGRAMS): string => {
    for (const [mark, name] of table) {
      const found = mark.exec(header);
      if (found) {
        return [name, found[1]].filter(Boolean).join(" ");
      }
    }
    return "";
  };
  return [nameIn(PROGRAMS), nameIn(SYSTEMS)].filter(Boolean).join(" on ");
}
