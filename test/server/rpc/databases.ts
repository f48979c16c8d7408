/** The databases that a platform's tests run on. */
import { newSchema, openPostgres } from "../../storage/postgres/databases.ts";
import { openSqlite } from "../../storage/sqlite/databases.ts";

export const POSTGRES_SCHEMA = newSchema();

/** Test files that run in one process share the schema, unless they open one of their own. */
export const DATABASES = [
  { database: "SQLite", open: (_schema?: string) => openSqlite(":memory:") },
  {
    database: "Postgres",
    open: (schema = POSTGRES_SCHEMA) => openPostgres({ schema }),
  },
];
