import type { Deed } from "./deed.ts";
import type { NewSecret, TokenFields, TokenRecord } from "./tokens.ts";

/** A login by code that is under way (RFC 8628). */
export interface DeviceLoginRecord {
  readonly hostName: string;
  readonly address: string;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
}

/** The personal token that ends a login. */
export interface LoginToken {
  readonly tokenId: string;
  readonly secret: NewSecret;
  /** Developer operations access; the name follows from the login's host name. */
  readonly fields: Omit<TokenFields, "name">;
  /** Refuse when the organization has so many tokens. Default: no limit. */
  readonly limit?: number;
  /** Refuse when the person has so many personal ones there. Default: no limit. */
  readonly personalLimit?: number;
}

export type RedeemOutcome =
  | {
      readonly outcome: "redeemed";
      readonly token: TokenRecord;
      readonly organization: string;
      readonly email: string;
    }
  /** Unknown, expired, used, or the person is no member any more. */
  | { readonly outcome: "invalid" }
  /** The organization, or the person there, has as many tokens as the login's limit; the code is used up. */
  | { readonly outcome: "limit" | "personal_limit" };

/** The server's side of logins on the command line. Each code is redeemed once. */
export interface Logins {
  /** Keeps the digest of a code that the browser carries to the program. */
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

  /** A code with a wrong challenge or redirect is used up all the same. */
  redeemLoginCode(
    parameters: Deed & {
      readonly digest: string;
      readonly codeChallenge: string;
      readonly redirectUri: string;
      readonly token: LoginToken;
    },
  ): Promise<RedeemOutcome>;

  /** False when so many wait already: `limit` of them, from anywhere. */
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

  /** One that waits for an answer; undefined for none. */
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

  /** Asked before `intervalMs` have passed: `slow_down`, and the interval grows by 5 s. */
  redeemDeviceLogin(
    parameters: Deed & { readonly deviceDigest: string; readonly token: LoginToken },
  ): Promise<RedeemOutcome | { readonly outcome: "pending" | "slow_down" | "denied" }>;
}
