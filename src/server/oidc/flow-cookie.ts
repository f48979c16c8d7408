/**
 * What a browser keeps while its person is at the provider: sealed, so that
 * nobody can make a browser go on with a sign-in that it did not begin, and
 * for ten minutes. Under https no other host can plant one either: see
 * auth/sessions.ts.
 */
import { cookieValues } from "../../auth/cookies.ts";
import type { KeyRing } from "../../auth/keys.ts";
import type { Flow } from "./provider.ts";

const NAME = "tessera_oidc";
const CONTEXT = "oidc sign-in";
const LIFETIME_MS = 10 * 60_000;

/** A sign-in that is under way. */
export interface PendingSignIn extends Flow {
  /** Where the person wanted to go: a path. */
  readonly next: string;
  /** The session whose person is to prove once more that they are there; absent: somebody signs in. */
  readonly confirms?: string;
}

export interface FlowCookieOptions {
  readonly keys: KeyRing;
  readonly secure: boolean;
  readonly nowMs: number;
}

/** The `Set-Cookie` header that keeps a sign-in. */
export function writeFlowCookie(
  pending: PendingSignIn,
  { keys, secure, nowMs }: FlowCookieOptions,
): string {
  const text = JSON.stringify({ ...pending, expiresAtMs: nowMs + LIFETIME_MS });
  return setCookie(keys.seal(text, CONTEXT), LIFETIME_MS / 1000, secure);
}

/** The `Set-Cookie` header that forgets it. */
export function clearFlowCookie(secure: boolean): string {
  return setCookie("", 0, secure);
}

/** The sign-in of a `Cookie` header; undefined when there is none, or it took too long. */
export function readFlowCookie(
  header: string | undefined,
  { keys, secure, nowMs }: FlowCookieOptions,
): PendingSignIn | undefined {
  const [sealed] = cookieValues(header, nameOf(secure));
  if (!sealed) {
    return undefined;
  }
  let text: string;
  try {
    text = keys.unseal(sealed, CONTEXT);
  } catch {
    // Not of this platform, or of keys that are gone: as if there were none.
    return undefined;
  }
  // What opens was sealed by `writeFlowCookie`.
  const pending = JSON.parse(text) as PendingSignIn & { readonly expiresAtMs: number };
  return pending.expiresAtMs > nowMs ? pending : undefined;
}

function setCookie(value: string, maxAgeSeconds: number, secure: boolean): string {
  const attributes = `Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Lax`;
  // The prefix asks for the path of everything.
  const path = secure ? "/" : "/auth/oidc";
  return `${nameOf(secure)}=${value}; Path=${path}; ${attributes}${secure ? "; Secure" : ""}`;
}

function nameOf(secure: boolean): string {
  return secure ? `__Host-${NAME}` : NAME;
}
