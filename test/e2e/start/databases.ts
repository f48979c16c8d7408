/** The databases that a platform runs on, for tests of both. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ask, serverUrl } from "../../storage/postgres/databases.ts";
import type { Folder } from "./platform.ts";

export interface Database {
  /** As `DATABASE_URL` names it; undefined for the file in the data folder. */
  readonly url: string | undefined;
  /** All that is stored, as text. */
  dump(): Promise<string>;
}

let made = 0;

/** An empty Postgres database of its own. */
export async function newPostgres(): Promise<string> {
  const server = await serverUrl();
  made += 1;
  const name = `start_${process.pid}_${Date.now()}_${made}`;
  await ask(server, `CREATE DATABASE ${name}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}

export const DATABASES: readonly (readonly [
  name: string,
  open: (folder: Folder) => Promise<Database>,
])[] = [
  [
    "SQLite",
    async (folder) => ({
      url: undefined,
      dump: async () =>
        readdirSync(folder.data)
          .filter((name) => name.startsWith("tessera.db"))
          .map((name) => readFileSync(join(folder.data, name), "latin1"))
          .join("\n"),
    }),
  ],
  [
    "Postgres",
    async () => {
      const url = await newPostgres();
      return { url, dump: () => dumpPostgres(url) };
    },
  ],
];

async function dumpPostgres(url: string): Promise<string> {
  const tables = await ask(
    url,
    "SELECT table_name FROM information_schema.tables WHERE table_schema = 'tessera'",
  );
  const rows = await Promise.all(
    tables.map(({ table_name }) => ask(url, `SELECT t::text FROM tessera.${table_name} t`)),
  );
  return JSON.stringify(rows);
}
