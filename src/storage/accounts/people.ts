import type { Deed } from "./deed.ts";

export type Role = "admin" | "member";

export interface User {
  readonly userId: string;
  /** In lower case. */
  readonly email: string;
  readonly displayName: string;
  /** As `@node-rs/argon2` writes it; undefined for who signs in by OpenID Connect only. */
  readonly passwordHash: string | undefined;
  readonly createdAtMs: number;
}

/** What a session's cookie or a person stands for. */
export interface Membership {
  readonly organizationId: string;
  readonly organization: string;
  readonly role: Role;
}

export interface SessionRecord {
  readonly kind: "session";
  readonly sessionId: string;
  readonly userId: string;
  readonly email: string;
  readonly memberships: readonly Membership[];
  readonly createdAtMs: number;
  /** When the person last proved to be there. */
  readonly authenticatedAtMs: number;
  readonly expiresAtMs: number;
}

export interface NewSession {
  readonly sessionId: string;
  readonly digest: string;
  readonly expiresAtMs: number;
  /** When the person has proved to be there. Default: now, as with a password. */
  readonly authenticatedAtMs?: number;
}

/** What has ended with a password. */
export interface PasswordChange {
  readonly endedSessions: number;
  readonly endedTokens: number;
}

/** Whether the platform still waits for its first person, and all that people do to sign in. */
export interface People {
  /** True until the first organization exists. */
  needsSetup(): Promise<boolean>;

  /** Replaces the setup link. False when the platform is set up already. */
  putSetupCode(parameters: { readonly digest: string; readonly nowMs: number }): Promise<boolean>;

  /**
   * Makes the first user, organization and admin in one transaction. With
   * `setupDigest` the code has to be the current one; without (the operator
   * at the machine) only the platform must not be set up.
   */
  setUp(
    parameters: Deed & {
      readonly setupDigest?: string;
      readonly organizationId: string;
      readonly organization: string;
      readonly userId: string;
      readonly email: string;
      readonly displayName: string;
      readonly passwordHash: string;
      readonly session?: NewSession;
    },
  ): Promise<{ readonly outcome: "done" | "code_invalid" | "already_done" }>;

  findUser(
    parameters: { readonly email: string } | { readonly userId: string },
  ): Promise<User | undefined>;

  /** The person that an OpenID Connect provider calls `subject`. */
  findIdentity(parameters: {
    readonly issuer: string;
    readonly subject: string;
  }): Promise<User | undefined>;

  /** Remembers the provider's name for a person. */
  linkIdentity(
    parameters: Deed & {
      readonly issuer: string;
      readonly subject: string;
      readonly userId: string;
    },
  ): Promise<void>;

  /** Opens a session for a person, who has just signed in. */
  openSession(
    parameters: Deed & { readonly userId: string; readonly session: NewSession },
  ): Promise<void>;

  /** The session of this digest, with the person's memberships; undefined for none, or an expired one. */
  findSession(parameters: {
    readonly digest: string;
    readonly nowMs: number;
  }): Promise<SessionRecord | undefined>;

  /** Notes that the session's person has proved to be there. */
  confirmSession(parameters: { readonly sessionId: string; readonly nowMs: number }): Promise<void>;

  closeSession(parameters: Deed & { readonly sessionId: string }): Promise<void>;

  /**
   * Sets a password and ends the person's sessions, but for `exceptSessionId`,
   * and logins of the command line that are under way; with `revokeTokens`
   * their personal tokens in every organization, too. Undefined for no such
   * person.
   */
  setPassword(
    parameters: Deed & {
      readonly userId: string;
      readonly passwordHash: string;
      readonly exceptSessionId?: string;
      /** Default false. */
      readonly revokeTokens?: boolean;
    },
  ): Promise<PasswordChange | undefined>;

  /** Records a failed sign-in, in every organization of the person, if there is one. */
  recordFailedSignIn(
    parameters: Deed & {
      readonly email: string;
      /** Such as why, for the audit log. */
      readonly details?: { readonly [name: string]: string };
    },
  ): Promise<void>;
}
