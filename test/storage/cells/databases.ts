/** Postgres databases for tests, three for home and two cells. */

import type { CellsOptions } from "../../../src/storage/cells/cells.ts";
import { CellsStorage } from "../../../src/storage/cells/storage.ts";
import { type PostgresOptions, PostgresStorage } from "../../../src/storage/postgres/storage.ts";
import { cellOfTaskId, HOME_CELL } from "../../../src/tasks/id.ts";
import type { TestDatabase } from "../contract.ts";
import { ask, newDatabase, serverUrl } from "../postgres/databases.ts";
import { guarded } from "./guarded.ts";

/** The addresses of home and of the cells `a` and `b`. */
type Addresses = readonly [home: string, a: string, b: string];

let created: Promise<Addresses> | undefined;

let template: Promise<string> | undefined;

/** A database with the schema, of which others are copies: to make it takes seconds on a busy machine. */
async function newTemplate(): Promise<string> {
  const url = await newDatabase();
  await using storage = new PostgresStorage(url);
  await storage.start();
  return url;
}

let copies = 0;

async function newCopy(): Promise<string> {
  template ??= newTemplate();
  const url = new URL(await template);
  const name = url.pathname.slice(1);
  copies += 1;
  url.pathname = `/${name}_${copies}`;
  await ask(await serverUrl(), `CREATE DATABASE ${name}_${copies} TEMPLATE ${name}`);
  return url.href;
}

async function newDatabases(): Promise<Addresses> {
  return [await newCopy(), await newCopy(), await newCopy()];
}

/** Those that the tests of a file share. */
export function databaseUrls(): Promise<Addresses> {
  created ??= newDatabases();
  return created;
}

type Options = Omit<CellsOptions, "home" | "cells">;

/** A storage over the three, which is not started. Each of them refuses tasks of another cell. */
export async function cellsStorage(
  postgres: PostgresOptions,
  options: Options = {},
  addresses?: Addresses,
): Promise<CellsStorage> {
  const [home, a, b] = addresses ?? (await databaseUrls());
  const { cellOf = cellOfTaskId } = options;
  const of = (url: string, cell: number): PostgresStorage =>
    guarded(new PostgresStorage(url, { connections: 4, leaseClock: "caller", ...postgres }), {
      cell,
      cellOf,
    });
  return new CellsStorage({
    home: of(home, HOME_CELL),
    cells: [
      { name: "a", storage: of(a, 1) },
      { name: "b", storage: of(b, 2) },
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

/** Empties databases: to make others takes longer than a test. */
export async function emptyDatabases(addresses?: Addresses): Promise<void> {
  await Promise.all((addresses ?? (await databaseUrls())).map((url) => ask(url, EMPTY)));
}

/** Databases that no test uses now. */
const free: Addresses[] = [];

/** Empty databases whose tasks are where this says. */
export function databasesWithTasksIn(
  cellOf: (taskId: string) => number,
): () => Promise<TestDatabase> {
  return async () => {
    const addresses = free.pop() ?? (await newDatabases());
    await emptyDatabases(addresses);
    return {
      async open() {
        const storage = await cellsStorage({}, { cellOf }, addresses);
        await storage.start();
        return storage;
      },
      async [Symbol.asyncDispose]() {
        free.push(addresses);
      },
    };
  };
}
