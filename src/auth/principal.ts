/**
 * The authenticated caller. Protocols pass a request's `Credentials` to an
 * `Authenticate`, which returns a `Principal`; `permissions.ts` decides what
 * the principal may do.
 */
import { type ContextValues, createContextKey } from "@connectrpc/connect";
import type { Membership, Role } from "../storage/accounts/people.ts";

/** A person who is signed in. */
export interface SessionPrincipal {
  readonly kind: "session";
  readonly sessionId: string;
  readonly userId: string;
  readonly email: string;
  /** Empty if the person gave none. */
  readonly displayName: string;
  readonly memberships: readonly Membership[];
  /** Whether the person is an operator of the platform. */
  readonly operator: boolean;
  /** When the person last authenticated. */
  readonly authenticatedAtMs: number;
  readonly expiresAtMs: number;
}

/** An API token. */
export interface TokenPrincipal {
  readonly kind: "token";
  readonly tokenId: string;
  readonly tokenKind: "personal" | "organization";
  readonly tokenName: string;
  readonly organizationId: string;
  readonly organization: string;
  readonly access: {
    readonly developerOperations: boolean;
    readonly protectedEndpoint: boolean;
    readonly monitoring: boolean;
    readonly worker: boolean;
  };
  readonly allDeployments: boolean;
  readonly deployments: readonly { readonly deploymentId: string; readonly name: string }[];
  readonly expiresAtMs: number;
  /** In CIDR notation; empty: from anywhere. */
  readonly allowedNetworks: readonly string[];
  /** The owner of a personal token. */
  readonly user:
    | { readonly userId: string; readonly email: string; readonly role: Role }
    | undefined;
}

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
