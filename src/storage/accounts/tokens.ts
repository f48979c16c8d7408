import type { Deed } from "./deed.ts";
import type { Page, PageQuery } from "./page.ts";
import type { Role } from "./people.ts";

export type TokenKind = "personal" | "organization";

export interface TokenGrants {
  readonly developerOperations: boolean;
  readonly protectedEndpoint: boolean;
  readonly monitoring: boolean;
}

export interface TokenRecord {
  readonly tokenId: string;
  readonly organizationId: string;
  readonly organization: string;
  readonly kind: TokenKind;
  readonly name: string;
  readonly description: string;
  readonly access: TokenGrants;
  readonly allDeployments: boolean;
  readonly deployments: readonly { readonly deploymentId: string; readonly name: string }[];
  readonly expiresAtMs: number;
  readonly notBeforeMs: number | undefined;
  /** In CIDR notation. */
  readonly allowedNetworks: readonly string[];
  readonly createdAtMs: number;
  readonly createdBy: string;
  /** The creator; for personal tokens the person whose it is. */
  readonly userId: string | undefined;
  readonly updatedAtMs: number;
  readonly lastUsedAtMs: number | undefined;
  readonly lastUsedAddress: string | undefined;
  readonly version: number;
  readonly hint: string;
  /** Until when the value before the current one is valid; may have passed. */
  readonly previousValidUntilMs: number | undefined;
  /** A sealed value is kept. */
  readonly revealable: boolean;
}

/** A value of a token, as it is kept. */
export interface NewSecret {
  /** HMAC of the value, in base64url. */
  readonly digest: string;
  readonly digestKeyId: string;
  readonly hint: string;
  /** The value, sealed. Ignored for personal tokens, and while the organization has reveal off. */
  readonly sealed?: string;
}

/** What verification has to know of a value: one query's answer. */
export interface TokenCredential {
  readonly kind: "token";
  readonly digest: string;
  readonly digestKeyId: string;
  readonly tokenId: string;
  readonly tokenKind: TokenKind;
  readonly tokenName: string;
  readonly organizationId: string;
  readonly organization: string;
  readonly access: TokenGrants;
  readonly allDeployments: boolean;
  readonly deployments: readonly { readonly deploymentId: string; readonly name: string }[];
  /** Of the token, or of this value when it lives on in a grace, whichever is earlier. */
  readonly expiresAtMs: number;
  readonly notBeforeMs: number | undefined;
  readonly allowedNetworks: readonly string[];
  /** Of a personal token. */
  readonly user:
    | { readonly userId: string; readonly email: string; readonly role: Role }
    | undefined;
  /** Of the organization: a monitoring token is worth nothing without it. */
  readonly monitoringEnabled: boolean;
}

export interface TokenFields {
  readonly name: string;
  readonly description: string;
  readonly access: TokenGrants;
  readonly allDeployments: boolean;
  /** Names. */
  readonly deployments: readonly string[];
  readonly expiresAtMs: number;
  readonly notBeforeMs: number | undefined;
  readonly allowedNetworks: readonly string[];
}

/** What of a token changes: undefined fields stay, and a `notBeforeMs` of null is taken away. */
export type TokenUpdate = Partial<Omit<TokenFields, "notBeforeMs">> & {
  readonly notBeforeMs?: number | null | undefined;
};

/** Names of a token's deployments that the organization does not have. */
interface UnknownDeployments {
  readonly outcome: "unknown_deployments";
  readonly names: readonly string[];
}

type TokenKey = { readonly organizationId: string; readonly tokenId: string };

export interface Tokens {
  /** The person of a personal token must still be a member: else `not_member`. */
  createToken(
    parameters: Deed &
      TokenKey & {
        readonly kind: TokenKind;
        readonly userId: string | undefined;
        readonly fields: TokenFields;
        readonly secret: NewSecret;
        /** Refuse when the organization has so many, expired ones included: they can be prolonged. */
        readonly limit: number;
        /** Refuse when a personal token's person has so many there; expired ones count too. */
        readonly personalLimit: number;
      },
  ): Promise<
    | { readonly outcome: "created"; readonly token: TokenRecord }
    | { readonly outcome: "not_member" | "monitoring_disabled" | "limit" | "personal_limit" }
    | UnknownDeployments
  >;

  getToken(parameters: TokenKey): Promise<TokenRecord | undefined>;

  /** Newest first: organization tokens, and of personal ones those of `viewerId`. `after` is a token's id. */
  listTokens(
    parameters: PageQuery & {
      readonly organizationId: string;
      readonly viewerId: string | undefined;
      readonly kind?: TokenKind;
    },
  ): Promise<Page<TokenRecord>>;

  /** A person's personal tokens in every organization that have not expired: how many, and `limit` of them. */
  listPersonalTokens(parameters: {
    readonly userId: string;
    readonly nowMs: number;
    readonly limit: number;
  }): Promise<{ readonly count: number; readonly tokens: readonly TokenRecord[] }>;

  /** A `version` other than the current one is a conflict. */
  updateToken(
    parameters: Deed & TokenKey & { readonly fields: TokenUpdate; readonly version?: number },
  ): Promise<
    | { readonly outcome: "updated"; readonly token: TokenRecord }
    | { readonly outcome: "not_found" | "version_conflict" | "monitoring_disabled" }
    | UnknownDeployments
  >;

  deleteToken(parameters: Deed & TokenKey): Promise<boolean>;

  /** Gives a token another value; the one before stays valid for `graceMs`, any earlier one ends. */
  rotateToken(
    parameters: Deed & TokenKey & { readonly secret: NewSecret; readonly graceMs: number },
  ): Promise<TokenRecord | undefined>;

  /** The sealed current value; undefined for no such token, `null` when none is kept. */
  getSealed(parameters: TokenKey): Promise<string | null | undefined>;

  /**
   * The credential of any of these digests: the value's under each key. One
   * query. A token that has expired, or is not valid yet, is answered too.
   */
  findCredential(parameters: {
    readonly digests: readonly string[];
    readonly nowMs: number;
  }): Promise<TokenCredential | undefined>;

  /** Replaces a digest by that of the same value under another key. */
  replaceDigest(parameters: {
    readonly digest: string;
    readonly newDigest: string;
    readonly newDigestKeyId: string;
  }): Promise<void>;

  /** Sealed values for resealing after a rotation of keys, with what they were sealed for; `after` is a digest. */
  listSealed(
    parameters: PageQuery,
  ): Promise<Page<TokenKey & { readonly digest: string; readonly sealed: string }>>;

  /** Replaces a sealed value, if it is still the one read. */
  replaceSealed(parameters: {
    readonly digest: string;
    readonly from: string;
    readonly to: string;
  }): Promise<void>;

  /** Tells every node that the keys were rotated. */
  announceKeys(parameters: Deed): Promise<void>;

  /** Notes uses in one batch; never moves a time backwards. */
  recordUses(parameters: {
    readonly uses: readonly (TokenKey & { readonly timeMs: number; readonly address: string })[];
  }): Promise<void>;
}
