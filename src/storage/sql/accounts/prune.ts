import type { Accounts } from "../../accounts/accounts.ts";
import { type Operation, query } from "../operation.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/**
 * What is deleted, and how long after its end. Change events are kept much
 * longer than any cache entry lives, and ended token values as long as people
 * may want to know when they ended. The audit log is kept for ever.
 */
const ENDED = [
  { table: "sessions", key: "session_id", end: "expires_at_ms", keptMs: DAY_MS },
  { table: "login_codes", key: "digest", end: "expires_at_ms", keptMs: HOUR_MS },
  { table: "device_logins", key: "device_digest", end: "expires_at_ms", keptMs: HOUR_MS },
  { table: "invitations", key: "invitation_id", end: "expires_at_ms", keptMs: 30 * DAY_MS },
  { table: "token_secrets", key: "digest", end: "valid_until_ms", keptMs: HOUR_MS },
  { table: "changes", key: "sequence", end: "time_ms", keptMs: HOUR_MS },
] as const;

/** Deletes old rows: change events by key from the oldest on, others by their end. */
export function* pruneAccounts({
  nowMs,
  limit,
}: Parameters<Accounts["pruneAccounts"]>[0]): Operation<number> {
  let deleted = 0;
  for (const { table, key, end, keptMs } of ENDED) {
    const rows = yield* query(
      `DELETE FROM ${table} WHERE ${key} IN (
         SELECT ${key} FROM ${table} WHERE ${end} < ?
         ORDER BY ${table === "changes" ? key : end} LIMIT ?
       ) RETURNING ${key}`,
      nowMs - keptMs,
      limit,
    );
    deleted += rows.length;
  }
  return deleted;
}
