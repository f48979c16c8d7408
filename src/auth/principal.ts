/**
 * Who is calling. Faces hand over what a request brought as a `Credentials`;
 * an `Authenticate` makes a `Principal` of it; what the principal may do is
 * decided by `permissions.ts`.
 */
import { type ContextValues, createContextKey } from "@connectrpc/connect";
import type { Membership, Role } from "../storage/accounts/people.ts";

/** A person who is signed in. */
export interface SessionPrincipal {
  readonly kind: "session";
  readonly sessionId: string;
  readonly userId: string;
  readonly email: string;
  readonly memberships: readonly Membership[];
  /** When the person last proved to be there. */
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
  };
  readonly allDeployments: boolean;
  readonly deployments: readonly { readonly deploymentId: string; readonly name: string }[];
  readonly expiresAtMs: number;
  /** In CIDR notation; none: from anywhere. */
  readonly allowedNetworks: readonly string[];
  /** The person of a personal token. */
  readonly user:
    | { readonly userId: string; readonly email: string; readonly role: Role }
    | undefined;
}

export type Principal =
  | SessionPrincipal
  | TokenPrincipal
  /** The one token of `tessera serve --token`: everything on that server. */
  | { readonly kind: "shared" }
  /** Nobody has shown who they are; on a server that asks nobody, that is everyone. */
  | { readonly kind: "anonymous" };

/** What a request brought to say who sends it. */
export interface Credentials {
  readonly authorization: string | undefined;
  readonly cookie: string | undefined;
  /** Of the other end of the connection, or what a trusted proxy says it is. */
  readonly address: string;
  /** Whether it came by https, as a trusted proxy says. Default false. */
  readonly secure?: boolean;
}

/**
 * Tells who is calling; throws TOKEN_INVALID, with the same message whatever
 * is wrong with the credential. It answers at once where it can: a promise
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

/** The principal of a request that has been authenticated already. */
export function principalOf(values: ContextValues): Principal | undefined {
  return values.get(principalKey);
}

export function setPrincipal(values: ContextValues, principal: Principal): ContextValues {
  return values.set(principalKey, principal);
}

/** The address that a call comes from; empty where it is not known. */
export function addressOf(values: ContextValues): string {
  return values.get(addressKey);
}

export function setAddress(values: ContextValues, address: string): ContextValues {
  return values.set(addressKey, address);
}

/** Whether a call came by https, as a trusted proxy says. */
export function isSecure(values: ContextValues): boolean {
  return values.get(secureKey);
}

export function setSecure(values: ContextValues): ContextValues {
  return values.set(secureKey, true);
}
