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

/**
 * How long all migrations of a start may take together: one may rewrite a table, so they have
 * longer than an ordinary statement.
 */
const MIGRATION_TIMEOUT_MS = 10 * 60_000;

interface PostgresMigrationOptions {
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

// Locks all tables before they are migrated, so that nodes at work wait a moment, and none of
// their statements fails.
//
// A migration that locked one table after the other could deadlock with a statement of a node
// that uses the same tables, and Postgres would end either. So all locks are taken first, in an
// attempt that is broken off sooner than Postgres looks for deadlocks (`deadlock_timeout`, 1 s).
// A long transaction of another program, such as pg_dump, makes attempts fail; nodes go on
// between them.

/** How long nodes may wait for an attempt to lock all tables. Below Postgres's `deadlock_timeout`. */
const TABLE_LOCK_TIMEOUT_MS = 400;

/** Between two attempts; nodes work on what has waited. */
const TABLE_LOCK_PAUSE_MS = 1_500;

/** Attempts to lock all tables, a minute and a half of them, before a migration is given up. */
const MAX_TABLE_LOCK_ATTEMPTS = 45;

/** What Postgres answers when it has ended a statement after its `statement_timeout`. */
const QUERY_CANCELED = "57014";

// A query of a view locks the view first and its tables then. Nodes that start read what the
// schema is, and wait for the end of the migration by its own lock.
const TABLES = statement(`
  SELECT string_agg(format('%I', relname), ', ' ORDER BY relkind DESC, relname) AS names
  FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'v')
    AND relname NOT IN ('schema_version', 'schema_migrations')`);

/**
 * Locks every table and view of the schema until the transaction ends, in which a statement has
 * `timeoutMs` afterwards.
 */
async function lockTables(session: Session, timeoutMs: number): Promise<void> {
  const run = (text: string): Promise<unknown> => session.query(statement(text));
  const [tables] = await session.query(TABLES);
  for (let attempt = 1; ; attempt += 1) {
    await run("SAVEPOINT before_locks");
    try {
      await run(`SET LOCAL statement_timeout = ${TABLE_LOCK_TIMEOUT_MS}`);
      await run(`LOCK TABLE ${tables?.names} IN ACCESS EXCLUSIVE MODE`);
      await run(`SET LOCAL statement_timeout = ${timeoutMs}`);
      return;
    } catch (err) {
      if ((err as { readonly code?: unknown }).code !== QUERY_CANCELED) {
        throw err;
      }
      if (attempt === MAX_TABLE_LOCK_ATTEMPTS) {
        throw new Error(
          "another program has used its tables for more than a minute, which cannot be migrated meanwhile (pg_stat_activity shows it; pg_dump is one): try again when it has ended",
          { cause: err },
        );
      }
      // This also takes the statement's timeout back.
      await run("ROLLBACK TO SAVEPOINT before_locks");
      await run(`SELECT pg_sleep(${TABLE_LOCK_PAUSE_MS / 1_000})`);
    }
  }
}
