/**
 * What a browser keeps while its person is at the provider: sealed, so that
 * nobody can make a browser go on with a sign-in that it did not begin, and
 * for ten minutes.
 */
import type { KeyRing } from "../auth/keys.ts";
import type { Flow } from "./provider.ts";

const NAME = "tessera_oidc";
const PATH = "/auth/oidc";
const CONTEXT = "oidc sign-in";
const LIFETIME_MS = 10 * 60_000;

/** A sign-in that is under way. */
export interface PendingSignIn extends Flow {
  /** Where the person wanted to go: a path. */
  readonly next: string;
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
  { keys, nowMs }: Omit<FlowCookieOptions, "secure">,
): PendingSignIn | undefined {
  const sealed = header
    ?.split(";")
    .map((pair) => pair.trim())
    .find((pair) => pair.startsWith(`${NAME}=`))
    ?.slice(NAME.length + 1);
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
  const attributes = `Path=${PATH}; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Lax`;
  return `${NAME}=${value}; ${attributes}${secure ? "; Secure" : ""}`;
}
