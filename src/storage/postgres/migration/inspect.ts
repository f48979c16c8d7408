/** Says what migrating a Postgres database would do; changes nothing. */
import { checkSchema, pendingAfter, type SchemaReport } from "../../migration.ts";
import { refusal } from "../connect.ts";
import { DEFAULT_STATEMENT_TIMEOUT_MS } from "../connection.ts";
import { PostgresDatabase } from "../database.ts";
import { MIGRATIONS } from "../schema.ts";
import { readSchema } from "./migrate.ts";

/** Rejects with a message that says what to do when this program cannot use the database. */
export async function inspectPostgres(url: string, schema = "tessera"): Promise<SchemaReport> {
  const timeoutMs = DEFAULT_STATEMENT_TIMEOUT_MS;
  try {
    await using db = new PostgresDatabase({ url, schema, connections: 1, timeoutMs });
    const found = await readSchema(db, schema);
    checkSchema(found, MIGRATIONS);
    const { version } = found;
    const [target, pending] = [MIGRATIONS.length, pendingAfter(version, MIGRATIONS)];
    return { version, target, pending, copy: undefined };
  } catch (err) {
    throw refusal(url, err);
  }
}
