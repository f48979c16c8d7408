/**
 * Migrates a Postgres database, in one transaction and one node at a time. `schema_version`
 * counts the applied migrations; versions that do not know more refuse a higher number there.
 * `schema_migrations` remembers them (see `storage/migration.ts`).
 */
import {
  checkMode,
  checkSchema,
  type Migrated,
  type Migration,
  type MigrationMode,
  numbered,
  type SchemaState,
} from "../../migration.ts";
import type { PostgresDatabase } from "../database.ts";
import { MIGRATIONS } from "../schema.ts";
import { type Session, statement } from "../session.ts";
import { lockTables } from "./lock-tables.ts";

/**
 * How long all migrations of a start may take together: one may rewrite a table, so they have
 * longer than an ordinary statement.
 */
const MIGRATION_TIMEOUT_MS = 10 * 60_000;

export interface PostgresMigrationOptions {
  readonly schema: string;
  readonly mode: MigrationMode;
  /** Default: those of this program. */
  readonly migrations?: readonly Migration[];
}

/**
 * Migrates the schema; answers undefined when it was up to date, or is a later one that this
 * program can use. Throws `SchemaRefused`, without a change, when it cannot, or the mode forbids
 * the migration.
 */
export async function migrate(
  db: PostgresDatabase,
  { schema, mode, migrations = MIGRATIONS }: PostgresMigrationOptions,
): Promise<Migrated | undefined> {
  const found = await db.transaction((session) => readSchema(session, schema));
  checkSchema(found, migrations);
  const to = migrations.length;
  if (found.version >= to) {
    return undefined;
  }
  checkMode(mode, found.version, to);
  return db.transaction(async (session) => {
    const run = (text: string): Promise<unknown> => session.query(statement(text));
    // The lock ends with the transaction.
    await run(`SET LOCAL statement_timeout = ${MIGRATION_TIMEOUT_MS}`);
    await run(`SELECT pg_advisory_xact_lock(hashtextextended('tessera ${schema}', 0))`);
    // Whatever became of the session's own settings on the way: no table may land elsewhere.
    await run(`SET LOCAL search_path = ${schema}`);
    // Another node may have been first.
    const before = await readSchema(session, schema);
    checkSchema(before, migrations);
    const from = before.version;
    if (from >= to) {
      return undefined;
    }
    if (from === 0) {
      // IF NOT EXISTS asks for the right to create one all the same.
      const there = await session.query(
        statement("SELECT 1 AS there FROM pg_namespace WHERE nspname = lower($1)"),
        schema,
      );
      if (there.length === 0) {
        await run(`CREATE SCHEMA ${schema}`);
      }
      await run("CREATE TABLE schema_version (version integer NOT NULL)");
      await run("INSERT INTO schema_version VALUES (0)");
    }
    if (from > 0) {
      await lockTables(session, MIGRATION_TIMEOUT_MS);
    }
    for (const { sql } of migrations.slice(from)) {
      await session.script(sql);
    }
    await remember(session, before, migrations);
    await run(`UPDATE schema_version SET version = ${to}`);
    return { from, to, copy: undefined };
  }, MIGRATION_TIMEOUT_MS);
}

/**
 * What the database says of its schema; version 0 before the first. It reads the catalog, and not
 * `to_regclass`, which answers from what the session knew before it waited for another node.
 */
export async function readSchema(
  session: Pick<Session, "query">,
  schema: string,
): Promise<SchemaState> {
  const [there] = await session.query(
    statement(
      `SELECT coalesce(bool_or(relname = 'schema_version'), false) AS counted,
         coalesce(bool_or(relname = 'schema_migrations'), false) AS remembered
       FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
       WHERE nspname = lower($1)`,
    ),
    schema,
  );
  if (there?.counted !== true) {
    return { version: 0, applied: [] };
  }
  const [row] = await session.query(statement(`SELECT version FROM ${schema}.schema_version`));
  const rows =
    there.remembered === true
      ? await session.query(
          statement(`SELECT version, name, digest, usable_from FROM ${schema}.schema_migrations`),
        )
      : [];
  return {
    version: Number(row?.version ?? 0),
    applied: rows.map((one) => ({
      version: Number(one.version),
      name: String(one.name),
      digest: String(one.digest),
      usableFrom: Number(one.usable_from),
    })),
  };
}

/** Writes down the migrations that are not yet. */
async function remember(
  session: Session,
  { applied }: SchemaState,
  migrations: readonly Migration[],
): Promise<void> {
  await session.script(`CREATE TABLE IF NOT EXISTS schema_migrations (
    version integer NOT NULL PRIMARY KEY,
    name text NOT NULL,
    digest text NOT NULL,
    usable_from integer NOT NULL
  )`);
  for (const { version, name, digest, usableFrom } of numbered(migrations).slice(applied.length)) {
    await session.query(
      statement("INSERT INTO schema_migrations VALUES ($1, $2, $3, $4)"),
      ...[version, name, digest, usableFrom],
    );
  }
}
