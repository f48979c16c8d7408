/** The part of the accounts port for people: setup, users, identities, sessions and passwords. */
import type { Deed } from "./deed.ts";
import type { Page, PageQuery } from "./page.ts";

export type Role = "admin" | "member";

export interface User {
  readonly userId: string;
  /** In lower case. */
  readonly email: string;
  readonly displayName: string;
  /** As `@node-rs/argon2` writes it; undefined for a person who signs in by OpenID Connect only. */
  readonly passwordHash: string | undefined;
  /**
   * Whether the mailbox or a provider has proved that the address is the
   * person's. Until then somebody else may have made the account.
   */
  readonly emailVerified: boolean;
  /** Whether the person is an operator of the platform. */
  readonly operator: boolean;
  readonly createdAtMs: number;
}

/** A person's role in an organization. */
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
  /** Empty if the person gave none. */
  readonly displayName: string;
  readonly memberships: readonly Membership[];
  /** Whether the person is an operator of the platform. */
  readonly operator: boolean;
  readonly createdAtMs: number;
  /** When the person last authenticated. */
  readonly authenticatedAtMs: number;
  /** The last use that was recorded; undefined before the first. */
  readonly usedAtMs: number | undefined;
  readonly expiresAtMs: number;
}

/** A session as its person sees it in the list of their sessions. */
export interface ListedSession {
  readonly sessionId: string;
  /** The browser or program that signed in, such as `Firefox 140 on Linux`; empty if not known. */
  readonly client: string;
  /** The address of the last recorded use, or of the sign-in before the first; empty if not known. */
  readonly address: string;
  readonly createdAtMs: number;
  /** The last use that was recorded; undefined before the first. */
  readonly usedAtMs: number | undefined;
  readonly expiresAtMs: number;
}

export interface NewSession {
  readonly sessionId: string;
  readonly digest: string;
  readonly expiresAtMs: number;
  /** See `ListedSession`. Default: not known. */
  readonly client?: string;
  /** When the person authenticated. Default: now, as with a password. */
  readonly authenticatedAtMs?: number;
}

/** What an account lost when its owner proved the address. */
export interface EndedCredentials {
  /** Whether the account had a password. */
  readonly password: boolean;
  readonly sessions: number;
  /** Personal tokens, those of command-line logins among them. */
  readonly personalTokens: number;
  /** Tokens that the account had made for its organizations. */
  readonly organizationTokens: number;
  /** Open invitations that the account had made. */
  readonly invitations: number;
}

/** What a change of the password ended. */
export interface PasswordChange {
  readonly endedSessions: number;
  readonly endedTokens: number;
}

/** Setup of the platform, and everything that people need to sign in. */
export interface People {
  /** True until the first organization exists. */
  needsSetup(): Promise<boolean>;

  /** Replaces the setup code. False when the platform is set up already. */
  putSetupCode(parameters: { readonly digest: string; readonly nowMs: number }): Promise<boolean>;

  /**
   * Creates the first user, organization and admin, who is an operator, in one transaction. With
   * `setupDigest` the code has to be the current one; without it (the operator
   * at the machine) it is enough that the platform is not set up yet.
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

  /** Finds the person whom an OpenID Connect provider calls `subject`. */
  findIdentity(parameters: {
    readonly issuer: string;
    readonly subject: string;
  }): Promise<User | undefined>;

  /**
   * Records that a person has proved their e-mail address. If nobody had before,
   * somebody else may have made the account: everything by which it could be
   * used ends in the same transaction (password, sessions, tokens, pending
   * logins), and so does what it gave to others (organization tokens,
   * invitations). Memberships stay; they are the person's alone from now on.
   * Returns what ended; undefined if the address was verified already.
   */
  verifyEmail(
    parameters: Deed & {
      readonly userId: string;
      /** How it was proved, for the audit log. */
      readonly way: "oidc" | "invitation";
      /** The password that the account has from now on. Default: none. Ignored if it was verified. */
      readonly passwordHash?: string;
    },
  ): Promise<EndedCredentials | undefined>;

  /** Links a provider's identity to a person. */
  linkIdentity(
    parameters: Deed & {
      readonly issuer: string;
      readonly subject: string;
      readonly userId: string;
    },
  ): Promise<void>;

  /** Gives a person another name. False when the person does not exist. */
  changeDisplayName(
    parameters: Deed & { readonly userId: string; readonly displayName: string },
  ): Promise<boolean>;

  /**
   * Makes a person an operator of the platform, or ends that. False when the person does not
   * exist.
   */
  setOperator(
    parameters: Deed & { readonly userId: string; readonly operator: boolean },
  ): Promise<boolean>;

  /** Lists the operators by e-mail address, at most 1,000. */
  listOperators(): Promise<User[]>;

  /**
   * Opens a session for a person who has just signed in. With `passwordHash`,
   * the password that they proved has to be the current one still; returns
   * false if it was changed in the meantime.
   */
  openSession(
    parameters: Deed & {
      readonly userId: string;
      readonly session: NewSession;
      readonly passwordHash?: string | undefined;
    },
  ): Promise<boolean>;

  /**
   * Finds a session by its digest, with the person's memberships; undefined
   * when it does not exist or has expired.
   */
  findSession(parameters: {
    readonly digest: string;
    readonly nowMs: number;
  }): Promise<SessionRecord | undefined>;

  /** Finds a session by its id, in the same way. */
  findSessionOf(parameters: {
    readonly sessionId: string;
    readonly nowMs: number;
  }): Promise<SessionRecord | undefined>;

  /** Records that the session's person has authenticated again. */
  confirmSession(parameters: { readonly sessionId: string; readonly nowMs: number }): Promise<void>;

  closeSession(parameters: Deed & { readonly sessionId: string }): Promise<void>;

  /** Lists the sessions of a person that have not expired, newest first. */
  listSessions(
    parameters: PageQuery & { readonly userId: string; readonly nowMs: number },
  ): Promise<Page<ListedSession>>;

  /**
   * Ends one session of a person, or all but one, and the pending command-line
   * logins of the person: who used an ended session may wait for one. Returns
   * how many sessions ended; 0 changes nothing.
   */
  endSessions(
    parameters: Deed & {
      readonly userId: string;
      readonly which: { readonly only: string } | { readonly allBut: string };
    },
  ): Promise<number>;

  /** Records the use of a session, unless a later one is recorded already. */
  recordSessionUse(parameters: {
    readonly sessionId: string;
    readonly timeMs: number;
    readonly address: string;
  }): Promise<void>;

  /**
   * Sets a password. Ends the person's sessions, except `exceptSessionId`, and
   * their pending command-line logins; with `revokeTokens` also their personal
   * tokens in every organization. Undefined when the person does not exist, or
   * has another password than `currentHash` by now.
   */
  setPassword(
    parameters: Deed & {
      readonly userId: string;
      readonly passwordHash: string;
      /** The hash of the password that the person has proved. Default: any, as for the operator. */
      readonly currentHash?: string | undefined;
      readonly exceptSessionId?: string;
      /** Default false. */
      readonly revokeTokens?: boolean;
    },
  ): Promise<PasswordChange | undefined>;

  /**
   * Records a failed sign-in in the audit log of each of the person's
   * organizations; does nothing for an unknown address.
   */
  recordFailedSignIn(
    parameters: Deed & {
      readonly email: string;
      /** Details for the audit log, such as the reason. */
      readonly details?: { readonly [name: string]: string };
    },
  ): Promise<void>;
}
