/** What the database is, for the operator. */
import type { DatabaseFacts } from "../database-facts.ts";
import type { SqliteDatabase } from "./database.ts";
import { MIGRATIONS } from "./schema.ts";

export function describeDatabase(db: SqliteDatabase): DatabaseFacts {
  const pages = Number(db.get("PRAGMA page_count")?.page_count);
  const pageBytes = Number(db.get("PRAGMA page_size")?.page_size);
  return {
    kind: "SQLite",
    version: String(db.get("SELECT sqlite_version() AS version")?.version),
    sizeBytes: pages * pageBytes,
    schemaVersion: MIGRATIONS.length,
  };
}
