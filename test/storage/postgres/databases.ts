/** Postgres databases for tests: a schema each, in a database of the test file's own. */
import pg from "pg";
import { inject } from "vitest";
import { type PostgresOptions, PostgresStorage } from "../../../src/storage/postgres/storage.ts";
import type { TestDatabase } from "../contract.ts";

let schemas = 0;
let created: Promise<string> | undefined;

/** Address of the file's own database, on the Postgres of this run. */
export function databaseUrl(): Promise<string> {
  created ??= newDatabase();
  return created;
}

/** Asks the Postgres of this run; the tests fail where there is none. */
export async function serverUrl(): Promise<string> {
  const res = await fetch(inject("postgresStarter"));
  const text = await res.text();
  if (!res.ok) {
    throw new Error(text);
  }
  return text;
}

let databases = 0;

/** An empty database that nobody else uses. */
export async function newDatabase(): Promise<string> {
  const server = await serverUrl();
  databases += 1;
  const name = `test_${process.pid}_${Date.now()}_${databases}`;
  await ask(server, `CREATE DATABASE ${name}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}

/** One statement on a connection of its own. */
export async function ask(
  url: string,
  text: string,
  ...values: unknown[]
): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query(text, values)).rows;
  } finally {
    await client.end();
  }
}

/** Sends an empty notification, as the heartbeat of a notifier. */
export async function notify(channel: string): Promise<void> {
  await ask(await databaseUrl(), "SELECT pg_notify($1, '')", channel);
}

/** A schema that nobody has used. */
export function newSchema(): string {
  schemas += 1;
  return `schema_${schemas}`;
}

export async function openPostgres(options: PostgresOptions): Promise<PostgresStorage> {
  const storage = new PostgresStorage(await databaseUrl(), { connections: 6, ...options });
  await storage.start();
  return storage;
}

export async function postgresDatabase(): Promise<TestDatabase> {
  const schema = newSchema();
  return {
    open: () => openPostgres({ schema, leaseClock: "caller" }),
    async [Symbol.asyncDispose]() {
      await ask(await databaseUrl(), `DROP SCHEMA IF EXISTS ${schema} CASCADE`);
    },
  };
}
