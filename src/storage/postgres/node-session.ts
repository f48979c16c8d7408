/**
 * The session of a node: an advisory lock that the connection of its notifier holds. The kernel
 * closes the connection when the node's process ends, however it does, and Postgres then releases
 * the lock, long before the leases of the node expire.
 *
 * A session also ends while its node lives, when a proxy or the server restarts. So leases are not
 * over with it, they expire earlier: a node that lives has renewed them by then. Who has no session
 * of some age judges nobody, because after a failover all sessions have ended.
 */

/** How much earlier a lease expires whose node has no session: 8 s after its last renewal. */
const ENDED_SESSION_ADVANCE_MS = 12_000;

/** Age of its own session from which a node judges others: a lease that was lost has ended by then. */
export const MIN_WITNESS_AGE_MS = 20_000;

/** A node that asks about leases. */
export interface NodeSession {
  /** The name of its session, which its notifier holds; null: it has none. */
  readonly name: string | null;
  /** Age of its session from which it judges others, in milliseconds. */
  readonly minAgeMs: number;
}

/** A name that no other node has. */
export function newSessionName(): string {
  return `session ${crypto.randomUUID()}`;
}

const KEY = (name: string): string => `hashtextextended(${name}, 0)`;

/** Takes the lock of the session named `$1`. Never waits: locks of a lost connection may linger. */
export const HOLD_SESSION = `SELECT pg_advisory_lock_shared(${KEY("$1")})`;

/** SQL for the processes of the server that hold the session of this name. */
function holders(name: string): string {
  return `SELECT pid FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 1 AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND ((classid::bigint << 32) | objid::bigint) = ${KEY(name)}`;
}

/** SQL: somebody holds the session of this name. */
export function isHeld(name: string): string {
  return `EXISTS (${holders(name)})`;
}

/**
 * SQL: a row of `leases` has expired at this time. `name` and `minAgeMs` are of the session that
 * asks.
 */
export function hasExpired(
  nowMs: string,
  { name, minAgeMs }: { readonly name: string; readonly minAgeMs: string },
): string {
  return `(expires_at_ms <= ${nowMs} OR (
    expires_at_ms <= ${nowMs} + ${ENDED_SESSION_ADVANCE_MS}
    AND owner LIKE 'session %' AND NOT ${isHeld("owner")}
    AND EXISTS (SELECT FROM pg_stat_activity WHERE pid IN (${holders(name)})
      AND backend_start <= now() - ${minAgeMs} * interval '1 ms')))`;
}
