/**
 * The accounts port: people, organizations, tokens, and their audit log.
 *
 * It keeps the promises of the storage port: results are durable,
 * STORAGE_UNAVAILABLE says that the database could not be reached, and any
 * other error is a defect. Failures of the domain are outcomes. Each call is
 * one transaction, which includes its audit event and the change events that
 * invalidate the caches of all nodes.
 *
 * Secrets (passwords, values of tokens, sessions, codes) arrive only as
 * digests, hashes or sealed values, never in plain text.
 */
import type { Logins } from "./logins.ts";
import type { Organizations } from "./organizations.ts";
import type { People } from "./people.ts";
import type { Tokens } from "./tokens.ts";

export interface Accounts extends People, Organizations, Tokens, Logins {
  /**
   * Lists at most `limit` changes after `afterSequence`, oldest first. `latest`
   * is the sequence of the last change of all; 0 when there are no changes.
   */
  listChanges(parameters: {
    readonly afterSequence: number;
    readonly limit: number;
  }): Promise<{ readonly changes: Change[]; readonly latest: number }>;

  /**
   * Deletes what ended long ago, at most `limit` of each kind: sessions, codes,
   * invitations, changes, old secrets.
   */
  pruneAccounts(parameters: { readonly nowMs: number; readonly limit: number }): Promise<number>;
}

/** An invalidation event: cached data about this id is stale. */
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
