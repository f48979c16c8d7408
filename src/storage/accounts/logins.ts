/**
 * The part of the accounts port for command-line logins: by browser redirect
 * and by device code.
 */
import type { Deed } from "./deed.ts";
import type { NewSecret, TokenFields, TokenRecord } from "./tokens.ts";

/** A pending device login (RFC 8628). */
export interface DeviceLoginRecord {
  readonly hostName: string;
  readonly address: string;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
}

/** The personal token that a login creates. */
export interface LoginToken {
  readonly tokenId: string;
  readonly secret: NewSecret;
  /** Developer operations access; the name follows from the login's host name. */
  readonly fields: Omit<TokenFields, "name">;
  /** Refused when the organization has this many tokens. Default: no limit. */
  readonly limit?: number;
  /** Refused when the person has this many personal tokens there. Default: no limit. */
  readonly personalLimit?: number;
}

export type RedeemOutcome =
  | {
      readonly outcome: "redeemed";
      readonly token: TokenRecord;
      readonly organization: string;
      readonly email: string;
    }
  /** The code is unknown, expired or used, or the person is no longer a member. */
  | { readonly outcome: "invalid" }
  /** The organization, or the person there, has reached the login's limit; the code is used up. */
  | { readonly outcome: "limit" | "personal_limit" };

/** The server's side of command-line logins. Each code can be redeemed once. */
export interface Logins {
  /**
   * Stores the digest of a code that the browser carries to the program. If the
   * actor's session has ended, nothing is stored: the code is invalid.
   */
  createLoginCode(
    parameters: Deed & {
      readonly digest: string;
      readonly userId: string;
      readonly organizationId: string;
      readonly codeChallenge: string;
      readonly redirectUri: string;
      readonly hostName: string;
      readonly expiresAtMs: number;
    },
  ): Promise<void>;

  /** Redeems a code for a token. A wrong challenge or redirect uses the code up as well. */
  redeemLoginCode(
    parameters: Deed & {
      readonly digest: string;
      readonly codeChallenge: string;
      readonly redirectUri: string;
      readonly token: LoginToken;
    },
  ): Promise<RedeemOutcome>;

  /** Starts a device login; false when `limit` of them are pending already, from anywhere. */
  createDeviceLogin(parameters: {
    readonly deviceDigest: string;
    readonly userCodeDigest: string;
    readonly hostName: string;
    readonly address: string;
    readonly nowMs: number;
    readonly expiresAtMs: number;
    readonly intervalMs: number;
    readonly limit: number;
  }): Promise<boolean>;

  /** Finds a device login that waits for approval; undefined when it does not exist. */
  findDeviceLogin(parameters: {
    readonly userCodeDigest: string;
    readonly nowMs: number;
  }): Promise<DeviceLoginRecord | undefined>;

  answerDeviceLogin(
    parameters: Deed & {
      readonly userCodeDigest: string;
      readonly approve: boolean;
      readonly userId: string;
      readonly organizationId: string;
    },
  ): Promise<boolean>;

  /**
   * Redeems an approved device login. A poll before `intervalMs` have passed
   * gets `slow_down`, and the interval grows by 5 s.
   */
  redeemDeviceLogin(
    parameters: Deed & { readonly deviceDigest: string; readonly token: LoginToken },
  ): Promise<RedeemOutcome | { readonly outcome: "pending" | "slow_down" | "denied" }>;
}
