/** Opening a Postgres database: migrations first, then what the sessions of its address are like. */

import type { Migrated, MigrationMode } from "../migration.ts";
import { refusal, UnfitSession } from "./connect.ts";
import { type DatabaseOptions, PostgresDatabase } from "./database.ts";
import { migrate } from "./migration/migrate.ts";
import { statement } from "./session.ts";
import { sessionFault, sessionWarning } from "./session-check.ts";

/** Connections for migrations. */
const MAX_MIGRATION_CONNECTIONS = 1;

export interface OpenOptions extends DatabaseOptions {
  /** An address of the same database without a pooler; undefined: the one address. */
  readonly directUrl: string | undefined;
  /** What to do about a schema of an earlier version. */
  readonly migration: MigrationMode;
  /** Called when the schema was migrated. */
  readonly onMigrated: ((migrated: Migrated) => void) | undefined;
  /** Told what is weaker than it could be. */
  readonly onWarning: ((message: string) => void) | undefined;
}

/** Rejects with one message that says what to do; nothing is left open then. */
export async function openDatabase(options: OpenOptions): Promise<PostgresDatabase> {
  const { url, directUrl, schema, onWarning } = options;
  if (directUrl !== undefined) {
    await migrateDirectly(directUrl, options);
  }
  let db: PostgresDatabase | undefined;
  try {
    db = new PostgresDatabase(options);
    if (directUrl === undefined) {
      await migrateSchema(db, options);
    } else {
      await checkSame(db, schema);
    }
    const facts = await db.examine();
    const fault = sessionFault(facts, schema);
    if (fault !== undefined) {
      throw new UnfitSession(fault);
    }
    await db.warm();
    const warning = sessionWarning(facts);
    if (warning !== undefined) {
      onWarning?.(warning);
    }
    return db;
  } catch (err) {
    await db?.[Symbol.asyncDispose]();
    throw refusal(url, err);
  }
}

async function migrateDirectly(url: string, options: OpenOptions): Promise<void> {
  let db: PostgresDatabase | undefined;
  try {
    db = new PostgresDatabase({ ...options, url, connections: MAX_MIGRATION_CONNECTIONS });
    await migrateSchema(db, options);
  } catch (err) {
    throw refusal(url, err);
  } finally {
    await db?.[Symbol.asyncDispose]();
  }
}

async function migrateSchema(
  db: PostgresDatabase,
  { schema, migration: mode, onMigrated }: OpenOptions,
): Promise<void> {
  const migrated = await migrate(db, { schema, mode });
  if (migrated !== undefined) {
    onMigrated?.(migrated);
  }
}

/** Throws where the pooled address leads to a database that the migrations have not changed. */
async function checkSame(db: PostgresDatabase, schema: string): Promise<void> {
  const [there] = await db.query(
    statement("SELECT to_regclass($1) IS NOT NULL AS there"),
    `${schema}.schema_version`,
  );
  if (there?.there !== true) {
    throw new UnfitSession("DATABASE_DIRECT_URL leads to another database: name the same one");
  }
}
