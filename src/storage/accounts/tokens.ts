/** The part of the accounts port for API tokens: their fields, values, verification and uses. */
import type { Deed } from "./deed.ts";
import type { Page, PageQuery } from "./page.ts";
import type { Role } from "./people.ts";

export type TokenKind = "personal" | "organization";

export interface TokenGrants {
  readonly developerOperations: boolean;
  readonly protectedEndpoint: boolean;
  readonly monitoring: boolean;
  readonly worker: boolean;
  readonly launch: boolean;
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
  /** In CIDR notation; empty: from anywhere. */
  readonly allowedNetworks: readonly string[];
  readonly createdAtMs: number;
  readonly createdBy: string;
  /** The creator; of a personal token, its owner. */
  readonly userId: string | undefined;
  readonly updatedAtMs: number;
  readonly lastUsedAtMs: number | undefined;
  readonly lastUsedAddress: string | undefined;
  readonly version: number;
  readonly hint: string;
  /** When the previous value stops being valid; may be in the past. */
  readonly previousValidUntilMs: number | undefined;
  /** Whether a sealed value is stored. */
  readonly revealable: boolean;
}

/** A token's value, as it is stored. */
export interface NewSecret {
  /** HMAC of the value, in base64url. */
  readonly digest: string;
  readonly digestKeyId: string;
  readonly hint: string;
  /** The sealed value. Ignored for personal tokens, and while the organization has reveal off. */
  readonly sealed?: string;
}

/** All that verification needs to know about a value, from one query. */
export interface TokenCredential
  extends Pick<
    TokenRecord,
    | "tokenId"
    | "organizationId"
    | "organization"
    | "access"
    | "allDeployments"
    | "deployments"
    | "notBeforeMs"
    | "allowedNetworks"
  > {
  readonly kind: "token";
  readonly digest: string;
  readonly digestKeyId: string;
  /** Tells the values of the token apart: from 0 to 255, and then from 0 again. */
  readonly generation: number;
  readonly tokenKind: TokenKind;
  readonly tokenName: string;
  /** When the token ends, or the grace period of this value, whichever is earlier. */
  readonly expiresAtMs: number;
  /** The owner of a personal token. */
  readonly user:
    | { readonly userId: string; readonly email: string; readonly role: Role }
    | undefined;
  /** Whether the organization has monitoring on; without it a monitoring token is not valid. */
  readonly monitoringEnabled: boolean;
}

export interface TokenFields {
  readonly name: string;
  readonly description: string;
  readonly access: TokenGrants;
  readonly allDeployments: boolean;
  /** By name. */
  readonly deployments: readonly string[];
  readonly expiresAtMs: number;
  readonly notBeforeMs: number | undefined;
  readonly allowedNetworks: readonly string[];
}

/** Changes to a token. Undefined fields stay as they are; a `notBeforeMs` of null removes it. */
export type TokenUpdate = Partial<Omit<TokenFields, "notBeforeMs">> & {
  readonly notBeforeMs?: number | null | undefined;
};

/** The token names deployments that the organization does not have. */
interface UnknownDeployments {
  readonly outcome: "unknown_deployments";
  readonly names: readonly string[];
}

type TokenKey = { readonly organizationId: string; readonly tokenId: string };

export interface Tokens {
  /**
   * Creates a token. The owner of a personal token must still be a member, and
   * the actor's session or token must not have ended, otherwise `not_member`.
   */
  createToken(
    parameters: Deed &
      TokenKey & {
        readonly kind: TokenKind;
        readonly userId: string | undefined;
        readonly fields: TokenFields;
        readonly secret: NewSecret;
        /**
         * Refused when the organization has this many, including expired ones: they can
         * be extended.
         */
        readonly limit: number;
        /**
         * Refused when the owner of a personal token has this many there, including
         * expired ones.
         */
        readonly personalLimit: number;
      },
  ): Promise<
    | { readonly outcome: "created"; readonly token: TokenRecord }
    | { readonly outcome: "not_member" | "monitoring_disabled" | "limit" | "personal_limit" }
    | UnknownDeployments
  >;

  getToken(parameters: TokenKey): Promise<TokenRecord | undefined>;

  /**
   * Lists tokens, newest first: organization tokens, and the personal ones of
   * `viewerId`. `after` is a token's id.
   */
  listTokens(
    parameters: PageQuery & {
      readonly organizationId: string;
      readonly viewerId: string | undefined;
      readonly kind?: TokenKind;
    },
  ): Promise<Page<TokenRecord>>;

  /**
   * Counts a person's unexpired personal tokens in all organizations, and lists
   * `limit` of them.
   */
  listPersonalTokens(parameters: {
    readonly userId: string;
    readonly nowMs: number;
    readonly limit: number;
  }): Promise<{ readonly count: number; readonly tokens: readonly TokenRecord[] }>;

  /** Changes a token. A `version` other than the current one is a conflict. */
  updateToken(
    parameters: Deed & TokenKey & { readonly fields: TokenUpdate; readonly version?: number },
  ): Promise<
    | { readonly outcome: "updated"; readonly token: TokenRecord }
    | { readonly outcome: "not_found" | "version_conflict" | "monitoring_disabled" }
    | UnknownDeployments
  >;

  deleteToken(parameters: Deed & TokenKey): Promise<boolean>;

  /**
   * Gives a token a new value. The previous value stays valid for `graceMs`;
   * any earlier one ends.
   */
  rotateToken(
    parameters: Deed & TokenKey & { readonly secret: NewSecret; readonly graceMs: number },
  ): Promise<TokenRecord | undefined>;

  /**
   * Returns the sealed current value; undefined when the token does not exist,
   * `null` when no sealed value is stored.
   */
  getSealed(parameters: TokenKey): Promise<string | null | undefined>;

  /**
   * Finds the credential by any of these digests (the value's digest under each
   * key) in one query. It also returns a token that has expired or is not valid
   * yet.
   */
  findCredential(parameters: {
    readonly digests: readonly string[];
    readonly nowMs: number;
  }): Promise<TokenCredential | undefined>;

  /**
   * Finds the credential of a token by its id: that of its current value, or of the value of a
   * generation. It also returns one that has expired.
   */
  findCredentialOf(
    parameters: TokenKey & { readonly generation?: number },
  ): Promise<TokenCredential | undefined>;

  /** Replaces a digest with that of the same value under another key. */
  replaceDigest(parameters: {
    readonly digest: string;
    readonly newDigest: string;
    readonly newDigestKeyId: string;
  }): Promise<void>;

  /**
   * Lists sealed values, with the token that each was sealed for, for resealing
   * after a key rotation; `after` is a digest.
   */
  listSealed(
    parameters: PageQuery,
  ): Promise<Page<TokenKey & { readonly digest: string; readonly sealed: string }>>;

  /** Replaces a sealed value if it still equals `from` (compare-and-swap). */
  replaceSealed(parameters: {
    readonly digest: string;
    readonly from: string;
    readonly to: string;
  }): Promise<void>;

  /** Tells every node that the keys were rotated. */
  announceKeys(parameters: Deed): Promise<void>;

  /** Records uses in one batch; never moves a time backwards. */
  recordUses(parameters: {
    readonly uses: readonly (TokenKey & { readonly timeMs: number; readonly address: string })[];
  }): Promise<void>;
}
