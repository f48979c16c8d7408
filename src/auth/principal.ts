/**
 * The authenticated caller. Protocols pass a request's `Credentials` to an
 * `Authenticate`, which returns a `Principal`; `permissions.ts` decides what
 * the principal may do.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { type ContextValues, createContextKey } from "@connectrpc/connect";
import { problem } from "../errors.ts";
import type { SessionRecord } from "../storage/accounts/people.ts";
import type { TokenCredential } from "../storage/accounts/tokens.ts";
import { bearerToken } from "./bearer.ts";

/** A person who is signed in. */
export type SessionPrincipal = Omit<SessionRecord, "createdAtMs" | "usedAtMs">;

/** An API token, without what only its verification needs. */
export type TokenPrincipal = Omit<
  TokenCredential,
  "digest" | "digestKeyId" | "notBeforeMs" | "monitoringEnabled"
> & {
  /** The id of a machine that a launcher has started, and that calls with what it was given. */
  readonly machine?: string;
};

export type Principal =
  | SessionPrincipal
  | TokenPrincipal
  /** The shared token of `tessera serve --token`: it may do everything on that server. */
  | { readonly kind: "shared" }
  /** No credential; on a server without authentication, every caller. */
  | {
      readonly kind: "anonymous" /** With a session that has ended. Default: none. */;
      readonly signedOut?: boolean;
    };

/** The credentials of a request, with its origin. */
export interface Credentials {
  readonly authorization: string | undefined;
  readonly cookie: string | undefined;
  /** The peer's address, or the one that a trusted proxy reports. */
  readonly address: string;
  /** Whether the request came over https, as reported by a trusted proxy. Default false. */
  readonly secure?: boolean;
  /**
   * True where the caller of a stream is authenticated again: they were right once, so it is no
   * guess, and the limit on failures does not hold. Default false.
   */
  readonly again?: boolean;
}

/**
 * Authenticates a caller. Throws TOKEN_MISSING for a header without a token, and TOKEN_INVALID with one message for every kind
 * of bad credential. It returns synchronously where it can, because a promise
 * costs every call.
 */
export type Authenticate = (credentials: Credentials) => Principal | Promise<Principal>;

const principalKey = createContextKey<Principal | undefined>(undefined, {
  description: "who is calling",
});

const addressKey = createContextKey<string>("", { description: "where the call comes from" });

const secureKey = createContextKey<boolean>(false, {
  description: "whether the call came by https",
});

/** The principal of an authenticated request. */
export function principalOf(values: ContextValues): Principal | undefined {
  return values.get(principalKey);
}

export function setPrincipal(values: ContextValues, principal: Principal): ContextValues {
  return values.set(principalKey, principal);
}

/** The caller's address; empty when unknown. */
export function addressOf(values: ContextValues): string {
  return values.get(addressKey);
}

export function setAddress(values: ContextValues, address: string): ContextValues {
  return values.set(addressKey, address);
}

/** Whether the call came over https, as reported by a trusted proxy. */
export function isSecure(values: ContextValues): boolean {
  return values.get(secureKey);
}

export function setSecure(values: ContextValues): ContextValues {
  return values.set(secureKey, true);
}

// The `Authenticate` of `tessera serve`: one shared token, or none.

/** Lets every caller in without a token. */
export const allowEveryone: Authenticate = () => ({ kind: "anonymous" });

/**
 * Requires one token of every caller, as `Authorization: Bearer …`. Digests are
 * compared in constant time, so the time tells nothing about the token, not
 * even its length.
 */
export function requireToken(token: string): Authenticate {
  const expected = digest(token);
  return ({ authorization }) => {
    const given = bearerToken(authorization);
    if (given === undefined || !timingSafeEqual(digest(given), expected)) {
      throw problem(
        "TOKEN_INVALID",
        "the token is not the one that this server asks for: send the header Authorization: Bearer <token> with that",
      );
    }
    return { kind: "shared" };
  };
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
