/** Three Postgres databases for tests, of home and two cells: one test at a time. */

import type { CellsOptions } from "../../../src/storage/cells/cells.ts";
import { CellsStorage } from "../../../src/storage/cells/storage.ts";
import { type PostgresOptions, PostgresStorage } from "../../../src/storage/postgres/storage.ts";
import type { TestDatabase } from "../contract.ts";
import { ask, newDatabase } from "../postgres/databases.ts";

let created: Promise<readonly string[]> | undefined;

/** The addresses of home and of the cells `a` and `b`, which the tests of a file share. */
export function databaseUrls(): Promise<readonly string[]> {
  created ??= Promise.all([newDatabase(), newDatabase(), newDatabase()]);
  return created;
}

type Options = Omit<CellsOptions, "home" | "cells">;

/** A storage over the three, which is not started. */
export async function cellsStorage(
  postgres: PostgresOptions,
  options: Options = {},
): Promise<CellsStorage> {
  const [home = "", a = "", b = ""] = await databaseUrls();
  const of = (url: string): PostgresStorage =>
    new PostgresStorage(url, { connections: 4, leaseClock: "caller", ...postgres });
  return new CellsStorage({
    home: of(home),
    cells: [
      { name: "a", storage: of(a) },
      { name: "b", storage: of(b) },
    ],
    ...options,
  });
}

const EMPTY = `DO $$ DECLARE name text; BEGIN
  FOR name IN SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
    WHERE schemaname = 'tessera' AND tablename NOT IN ('schema_version', 'schema_migrations', 'counters')
  LOOP EXECUTE 'DELETE FROM ' || name; END LOOP;
  IF to_regclass('tessera.counters') IS NOT NULL THEN UPDATE tessera.counters SET value = 0; END IF;
END $$`;

/** Empties the three: to make their tables anew takes three seconds for each test. */
export async function emptyDatabases(): Promise<void> {
  await Promise.all((await databaseUrls()).map((url) => ask(url, EMPTY)));
}

/** Empty databases whose tasks are all in one cell. One at a time. */
export function databasesWithTasksIn(cell: number): () => Promise<TestDatabase> {
  return async () => {
    await emptyDatabases();
    return {
      async open() {
        const storage = await cellsStorage({}, { cellOf: () => cell });
        await storage.start();
        return storage;
      },
      async [Symbol.asyncDispose]() {},
    };
  };
}
