/** What the database is, for the operator. */
import type { DatabaseFacts } from "../database-facts.ts";
import { type Session, statement } from "./session.ts";

const DESCRIBE = statement(`SELECT current_setting('server_version') AS version,
  pg_database_size(current_database()) AS size_bytes,
  (SELECT version FROM schema_version) AS schema_version`);

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
  };
}
