/** What the database is, for the operator. */
import type { DatabaseFacts } from "../database-facts.ts";
import type { SqliteDatabase } from "./database.ts";

export function describeDatabase(db: SqliteDatabase): DatabaseFacts {
  const pages = Number(db.get("PRAGMA page_count")?.page_count);
  const pageBytes = Number(db.get("PRAGMA page_size")?.page_size);
  const tasks = db.get("SELECT sum(queued) AS queued, sum(running) AS running FROM queue_counts");
  return {
    kind: "SQLite",
    version: String(db.get("SELECT sqlite_version() AS version")?.version),
    sizeBytes: pages * pageBytes,
    // Not the number of this program's: a later one may have expanded the file.
    schemaVersion: Number(db.get("PRAGMA user_version")?.user_version),
    queued: Number(tasks?.queued ?? 0),
    running: Number(tasks?.running ?? 0),
  };
}
