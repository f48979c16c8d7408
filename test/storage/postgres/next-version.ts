/** A schema one expansion ahead of this version's, as the next release will leave it. */

import {
  expand,
  type Migrated,
  type Migration,
  type MigrationMode,
} from "../../../src/storage/migration.ts";
import { PostgresDatabase } from "../../../src/storage/postgres/database.ts";
import { migrate } from "../../../src/storage/postgres/migration/migrate.ts";
import { MIGRATIONS } from "../../../src/storage/postgres/schema.ts";
import type { TestDatabase } from "../contract.ts";
import { ask, databaseUrl, newSchema, openPostgres } from "./databases.ts";

/** What a release may do to a schema that nodes of the version before go on using. */
const EXPANSION = expand(
  "of a test",
  `
  DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT relname FROM pg_class
      WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
    LOOP
      EXECUTE format('ALTER TABLE %I ADD COLUMN added_later text NOT NULL DEFAULT ''new''', name);
    END LOOP;
  END $$;
  CREATE TABLE added_later (id text PRIMARY KEY);
  CREATE INDEX live_tasks_added_later ON live_tasks (added_later);
  `,
);

export const NEXT: readonly Migration[] = [...MIGRATIONS, EXPANSION];

/** Starts a node of another version as far as its migrations. */
export async function startVersion(
  schema: string,
  migrations: readonly Migration[],
  {
    mode = "auto",
    timeoutMs = 5_000,
  }: { readonly mode?: MigrationMode; readonly timeoutMs?: number } = {},
): Promise<Migrated | undefined> {
  const options = { schema, connections: 1, timeoutMs };
  await using db = new PostgresDatabase({ url: await databaseUrl(), ...options });
  return await migrate(db, { schema, mode, migrations });
}

/** A database of the next version, for the contract of the storage. */
export async function nextVersion(): Promise<TestDatabase> {
  const schema = newSchema();
  await startVersion(schema, NEXT);
  return {
    open: () => openPostgres({ schema, leaseClock: "caller" }),
    async [Symbol.asyncDispose]() {
      await ask(await databaseUrl(), `DROP SCHEMA IF EXISTS ${schema} CASCADE`);
    },
  };
}
