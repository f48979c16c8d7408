/** `tessera admin migrate`: migrates the schema of a platform's database, or says what that would do. */
import { existsSync } from "node:fs";
import type { DataConfig, DataSecrets } from "../../config/start.ts";
import { isPostgres } from "../../config/values.ts";
import type { Migrated, SchemaReport } from "../../storage/migration.ts";
import { inspectSchema, openStorageToMigrate, shownDatabase } from "../adapters.ts";
import { openDataFolder } from "../data-folder.ts";

interface MigrationRequest {
  /** Only say what would be done. */
  readonly dryRun: boolean;
  /** Copy a SQLite file before. */
  readonly copies: boolean;
}

export interface MigrationAnswer extends SchemaReport {
  /** The database as it may be shown. */
  readonly database: string;
  /** What was done; undefined where nothing was. */
  readonly migrated: Migrated | undefined;
}

/**
 * Migrates the database, which may be empty or not there yet. On Postgres, nodes may be running
 * on it; a file must be free. Rejects with a message that says what to do.
 */
export async function migrateData(
  { dataFolder }: DataConfig,
  secrets: DataSecrets,
  { dryRun, copies }: MigrationRequest,
): Promise<MigrationAnswer> {
  const { database } = secrets;
  const report = await inspectSchema(secrets);
  let migrated: Migrated | undefined;
  if (!dryRun) {
    if (!isPostgres(database) && !existsSync(database)) {
      openDataFolder(dataFolder);
    }
    const onMigrated = (done: Migrated): void => {
      migrated = done;
    };
    await using storage = openStorageToMigrate(secrets, { copies, onMigrated });
    await storage.start();
  }
  return { ...report, database: shownDatabase(database), migrated };
}
