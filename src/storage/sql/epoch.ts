/**
 * The part of a new epoch that both databases share: rows by which the earlier
 * life of a restored platform would hold something.
 */
import { type Operation, query } from "./operation.ts";

/**
 * Change events that a platform may have written between a backup and its restoration. The new
 * epoch numbers its events from beyond them: a node that has read further than the backup finds a
 * gap, and drops all that it has cached.
 */
const MAX_CHANGES_SINCE_BACKUP = 1_000_000_000;

/** Nodes, what they reported and shared, what people were signed in by, and what was announced. */
const ENDED_TABLES = [
  ...["leases", "nodes", "deployment_reports", "metric_samples"],
  ...["sessions", "login_codes", "device_logins", "setup_codes"],
  "changes",
];

export function* endEarlierLife(): Operation<void> {
  for (const table of ENDED_TABLES) {
    yield* query(`DELETE FROM ${table}`);
  }
  yield* query(
    "UPDATE counters SET value = value + ? WHERE name = 'changes'",
    MAX_CHANGES_SINCE_BACKUP,
  );
}
