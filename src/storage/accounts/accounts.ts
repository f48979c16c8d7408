/**
 * The accounts port: people, organizations, tokens, and what happened to them.
 *
 * The promises are those of the storage port: what a promise resolves with is
 * durable, STORAGE_UNAVAILABLE says that the database could not be asked, and
 * anything else thrown is a defect. What can go wrong in the domain is an
 * outcome. Each call is one transaction, with its audit event and with the
 * change events by which every node forgets what it had remembered.
 *
 * Secrets (passwords, values of tokens, sessions, codes) never come here as
 * they are: only as digests, hashes or sealed.
 */
import type { Logins } from "./logins.ts";
import type { Organizations } from "./organizations.ts";
import type { People } from "./people.ts";
import type { Tokens } from "./tokens.ts";

export interface Accounts extends People, Organizations, Tokens, Logins {
  /**
   * The changes after `afterSequence`, oldest first, at most `limit`; with
   * `latest`, the sequence of the last one there is (0 for none).
   */
  listChanges(parameters: {
    readonly afterSequence: number;
    readonly limit: number;
  }): Promise<{ readonly changes: Change[]; readonly latest: number }>;

  /** Deletes at most `limit` each of what ended long ago: sessions, codes, invitations, changes, old secrets. */
  pruneAccounts(parameters: { readonly nowMs: number; readonly limit: number }): Promise<number>;
}

/** Something that a node may have remembered is no longer so. */
export interface Change {
  readonly sequence: number;
  readonly kind:
    | "token"
    | "session"
    /** A person: memberships, password. */
    | "user"
    | "organization"
    | "deployment"
    /** The platform's keys were rotated. */
    | "keys";
  /** The id of what changed; empty for keys. */
  readonly id: string;
}
