/**
 * Locks all tables before they are migrated, so that nodes at work wait a moment, and none of
 * their statements fails.
 *
 * A migration that locked one table after the other could deadlock with a statement of a node
 * that uses the same tables, and Postgres would end either. So all locks are taken first, in an
 * attempt that is broken off sooner than Postgres looks for deadlocks (`deadlock_timeout`, 1 s).
 * A long transaction of another program, such as pg_dump, makes attempts fail; nodes go on
 * between them.
 */
import { type Session, statement } from "../session.ts";

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
export async function lockTables(session: Session, timeoutMs: number): Promise<void> {
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
