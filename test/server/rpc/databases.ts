/** The databases that a platform's tests run on. */
import { newSchema, openPostgres } from "../../storage/postgres/databases.ts";
import { openSqlite } from "../../storage/sqlite/databases.ts";

export const POSTGRES_SCHEMA = newSchema();

export const DATABASES = [
  { database: "SQLite", open: () => openSqlite(":memory:") },
  { database: "Postgres", open: () => openPostgres({ schema: POSTGRES_SCHEMA }) },
];
