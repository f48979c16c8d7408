/** What the database is, for the operator. */
import type { DatabaseFacts } from "../database-facts.ts";
import { type Session, statement } from "./session.ts";

const DESCRIBE = statement(`SELECT current_setting('server_version') AS version,
  pg_database_size(current_database()) AS size_bytes,
  (SELECT version FROM schema_version) AS schema_version,
  coalesce(sum(queued), 0) AS queued, coalesce(sum(running), 0) AS running
  FROM (SELECT queued, running FROM queue_counts
    UNION ALL SELECT queued, running FROM queue_count_deltas) AS counted`);

export async function describeDatabase(session: Session): Promise<DatabaseFacts> {
  const [row] = await session.query(DESCRIBE);
  if (row === undefined) {
    throw new Error("the database has no schema version");
  }
  return {
    kind: "Postgres",
    version: String(row.version),
    sizeBytes: Number(row.size_bytes),
    schemaVersion: Number(row.schema_version),
    queued: Number(row.queued),
    running: Number(row.running),
  };
}
