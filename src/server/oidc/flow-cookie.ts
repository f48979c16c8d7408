/**
 * The sealed cookie that carries a sign-in while the person is at the provider.
 * The seal prevents that a browser continues a sign-in that it did not begin.
 * The cookie lives for ten minutes. Over https no other host can plant one
 * either: see auth/sessions.ts.
 */
import { cookieValues } from "../../auth/cookies.ts";
import type { KeyRing } from "../../auth/keys.ts";
import type { Flow } from "./provider.ts";

const NAME = "tessera_oidc";
const CONTEXT = "oidc sign-in";
/** How long a sign-in by a provider may take, from its begin to the return. */
const OIDC_SIGN_IN_LIFETIME_MS = 10 * 60_000;

/** A sign-in in progress. */
export interface PendingSignIn extends Flow {
  /** The path that the person wanted to open. */
  readonly next: string;
  /** The session whose person is to confirm their presence; absent for a new sign-in. */
  readonly confirms?: string;
}

interface FlowCookieOptions {
  readonly keys: KeyRing;
  readonly secure: boolean;
  readonly nowMs: number;
}

/** The `Set-Cookie` header that stores a sign-in. */
export function writeFlowCookie(
  pending: PendingSignIn,
  { keys, secure, nowMs }: FlowCookieOptions,
): string {
  const text = JSON.stringify({ ...pending, expiresAtMs: nowMs + OIDC_SIGN_IN_LIFETIME_MS });
  return setCookie(keys.seal(text, CONTEXT), OIDC_SIGN_IN_LIFETIME_MS / 1000, secure);
}

/** The `Set-Cookie` header that deletes it. */
export function clearFlowCookie(secure: boolean): string {
  return setCookie("", 0, secure);
}

/** The sign-in of a `Cookie` header; undefined if absent or expired. */
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
    // Not sealed by this platform, or by keys that are gone: treated as absent.
    return undefined;
  }
  // Only `writeFlowCookie` seals values in this context.
  const pending = JSON.parse(text) as PendingSignIn & { readonly expiresAtMs: number };
  return pending.expiresAtMs > nowMs ? pending : undefined;
}

function setCookie(value: string, maxAgeSeconds: number, secure: boolean): string {
  const attributes = `Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Lax`;
  // The prefix `__Host-` requires the path `/`.
  const path = secure ? "/" : "/auth/oidc";
  return `${nameOf(secure)}=${value}; Path=${path}; ${attributes}${secure ? "; Secure" : ""}`;
}

function nameOf(secure: boolean): string {
  return secure ? `__Host-${NAME}` : NAME;
}
