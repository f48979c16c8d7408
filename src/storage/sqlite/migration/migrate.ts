/**
 * Migrates a SQLite database, in one transaction: it has the new schema or the one from before.
 * `user_version` counts the applied migrations; `schema_migrations` remembers them (see
 * `storage/migration.ts`).
 */
import type { DatabaseSync } from "node:sqlite";
import {
  checkMode,
  checkSchema,
  type Migrated,
  type Migration,
  type MigrationMode,
  numbered,
  type SchemaState,
} from "../../migration.ts";
import { MIGRATIONS } from "../schema.ts";
import { copyBefore, removeOldCopies } from "./copy.ts";

export interface SqliteMigrationOptions {
  /** The file, beside which a copy is made before; undefined: none is made. */
  readonly copyBeside?: string;
  readonly mode: MigrationMode;
  /** Default: those of this program. */
  readonly migrations?: readonly Migration[];
}

export function readSchema(db: DatabaseSync): SchemaState {
  const version = Number(db.prepare("PRAGMA user_version").get()?.user_version ?? 0);
  const applied = remembers(db)
    ? db
        .prepare("SELECT version, name, digest, usable_from FROM schema_migrations")
        .all()
        .map((row) => ({
          version: Number(row.version),
          name: String(row.name),
          digest: String(row.digest),
          usableFrom: Number(row.usable_from),
        }))
    : [];
  return { version, applied };
}

/**
 * Migrates the schema; answers undefined when it was up to date. Throws `SchemaRefused` when
 * this program must not use it or the mode forbids it, and an Error that says what to do when
 * there is no room for the copy; then nothing has changed.
 */
export function migrate(db: DatabaseSync, options: SqliteMigrationOptions): Migrated | undefined {
  const { mode, migrations = MIGRATIONS, copyBeside } = options;
  const before = readSchema(db);
  const to = migrations.length;
  checkSchema(before, migrations);
  if (before.version >= to) {
    return undefined;
  }
  checkMode(mode, before.version, to);
  const copy =
    before.version > 0 && copyBeside !== undefined
      ? copyBefore(db, copyBeside, before.version)
      : undefined;
  inTransaction(db, () => {
    const { version } = readSchema(db);
    for (const { sql } of migrations.slice(version)) {
      db.exec(sql);
    }
    remember(db, migrations);
    db.exec(`PRAGMA user_version = ${Math.max(version, to)}`);
  });
  if (copyBeside !== undefined) {
    removeOldCopies(copyBeside);
  }
  return { from: before.version, to, copy };
}

function remembers(db: DatabaseSync): boolean {
  const found = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_migrations'";
  return db.prepare(found).get() !== undefined;
}

/** Writes down the migrations that are not yet. */
function remember(db: DatabaseSync, migrations: readonly Migration[]): void {
  db.exec(`
    CREATE TABLE IF NOT EXISTS schema_migrations (
      version INTEGER NOT NULL PRIMARY KEY,
      name TEXT NOT NULL,
      digest TEXT NOT NULL,
      usable_from INTEGER NOT NULL
    )`);
  const insert = db.prepare("INSERT OR IGNORE INTO schema_migrations VALUES (?, ?, ?, ?)");
  for (const { version, name, digest, usableFrom } of numbered(migrations)) {
    insert.run(version, name, digest, usableFrom);
  }
}

function inTransaction(db: DatabaseSync, work: () => void): void {
  db.exec("BEGIN IMMEDIATE");
  try {
    work();
    db.exec("COMMIT");
  } catch (err) {
    if (db.isTransaction) {
      db.exec("ROLLBACK");
    }
    throw err;
  }
}
