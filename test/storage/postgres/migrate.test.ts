/** A rolling upgrade: nodes of one version on the schema of the next. */
import pg from "pg";
import { describe, expect, test } from "vitest";
import { contract, expand } from "../../../src/storage/migration.ts";
import { readSchema } from "../../../src/storage/postgres/migration/migrate.ts";
import { MIGRATIONS } from "../../../src/storage/postgres/schema.ts";
import type { PostgresStorage } from "../../../src/storage/postgres/storage.ts";
import { Platform } from "../accounts/fixtures.ts";
import { claim, endAttempt, key, NOW_MS, newTask, openLease } from "../fixtures.ts";
import { ask, databaseUrl, newSchema, openPostgres } from "./databases.ts";
import { NEXT, startVersion } from "./next-version.ts";

/** Each kind of write of the queue, on a task of this name. */
async function runTask(storage: PostgresStorage, taskId: string): Promise<void> {
  await storage.submitTasks({ tasks: [newTask(taskId)] });
  await claim(storage);
  const attempt = { ...key(taskId), leaseId: "lease-1", attempt: 1 };
  const body = { kind: "progress", fraction: 0.5, message: "half" } as const;
  await storage.recordEvents({ events: [{ attempt, timeMs: NOW_MS, body }] });
  const result = { json: "1", files: [] };
  expect(await endAttempt(storage, attempt, { status: "success", result })).toBeDefined();
  expect(await storage.getTask(key(taskId))).toMatchObject({ status: "success" });
}

describe("a node on Postgres beside a newer one", () => {
  test("goes on with its queue and accounts while and after the newer one migrates", async () => {
    const schema = newSchema();
    await using old = await openPostgres({ schema, leaseClock: "caller" });
    await openLease(old);
    await runTask(old, "before");
    const platform = new Platform(old.accounts);
    const { organizationId } = await platform.setUp();
    const [from, to] = [MIGRATIONS.length, NEXT.length];
    // Tasks run throughout: no statement may fail, also not one that was planned before.
    let migrating = true;
    const migrated = startVersion(schema, NEXT).finally(() => {
      migrating = false;
    });
    let during = 0;
    do {
      during += 1;
      await runTask(old, `during-${during}`);
    } while (migrating);
    expect(await migrated).toEqual({ from, to, copy: undefined });
    await runTask(old, "after");
    await platform.join(organizationId, "after@example.com");
    // It starts again, and another one of its version joins.
    await using again = await openPostgres({ schema, leaseClock: "caller", migration: "check" });
    await runTask(again, "again");
    expect(await again.getTask(key("before"))).toMatchObject({ status: "success" });
    const versions = await ask(await databaseUrl(), `SELECT version FROM ${schema}.schema_version`);
    expect(versions).toEqual([{ version: to }]);
  });

  test("is refused once something is gone that it needs", async () => {
    const schema = newSchema();
    const later = [...NEXT, contract("of a test", NEXT.length, "DROP TABLE added_later")];
    await startVersion(schema, later);
    await expect(openPostgres({ schema })).rejects.toThrow(
      `its schema has version ${later.length} and needs a program that knows ${NEXT.length}, this program knows versions up to ${MIGRATIONS.length}: run a newer version of tessera`,
    );
    expect(await startVersion(schema, NEXT)).toBeUndefined();
  });

  test("is refused by a database whose migrations were others", async () => {
    const schema = newSchema();
    await (await openPostgres({ schema }))[Symbol.asyncDispose]();
    const url = await databaseUrl();
    await ask(url, `UPDATE ${schema}.schema_migrations SET digest = 'another' WHERE version = 1`);
    await expect(openPostgres({ schema })).rejects.toThrow(
      /^cannot open the database postgres:.*: migration 1 \(the schema of 0.1.0\) of its schema was another one/,
    );
  });
});

test("a database from before anything was remembered is refused", async () => {
  const schema = newSchema();
  await (await openPostgres({ schema }))[Symbol.asyncDispose]();
  await ask(await databaseUrl(), `DROP TABLE ${schema}.schema_migrations`);
  await expect(openPostgres({ schema })).rejects.toThrow(
    "a version that was never released has written its schema: run that one, or use another database",
  );
});

describe("migrating a Postgres database", () => {
  test("may take longer than a statement of the queue", async () => {
    const schema = newSchema();
    await startVersion(schema, MIGRATIONS);
    // The node waits a second longer for a statement than its timeout says.
    const slow = [...MIGRATIONS, expand("slow", "SELECT pg_sleep(1.5)")];
    expect(await startVersion(schema, slow, { timeoutMs: 300 })).toMatchObject({ to: slow.length });
  });

  test("waits for a long transaction of another program while nodes go on", async () => {
    const schema = newSchema();
    await using node = await openPostgres({ schema, leaseClock: "caller" });
    await openLease(node);
    const dump = new pg.Client(await databaseUrl());
    await dump.connect();
    await dump.query(`BEGIN; SELECT 1 FROM ${schema}.live_tasks`);
    const migrated = startVersion(schema, NEXT);
    const locking = `SELECT 1 FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'
      AND pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')`;
    await expect.poll(async () => ask(await databaseUrl(), locking)).toHaveLength(1);
    await runTask(node, "meanwhile");
    await dump.end();
    expect(await migrated).toMatchObject({ to: NEXT.length });
    await runTask(node, "after");
  });
});

describe("a node that only checks", () => {
  test("refuses an empty or older database with what to run, and takes a current one", async () => {
    const schema = newSchema();
    const checked = () => openPostgres({ schema, migration: "check" });
    await expect(checked()).rejects.toThrow("it is empty: run tessera admin migrate");
    await (await openPostgres({ schema }))[Symbol.asyncDispose]();
    await expect(startVersion(schema, NEXT, { mode: "check" })).rejects.toThrow(
      `its schema has version ${MIGRATIONS.length}, and this program needs version ${NEXT.length}: run tessera admin migrate`,
    );
    await startVersion(schema, NEXT);
    expect(await startVersion(schema, NEXT, { mode: "check" })).toBeUndefined();
    await (await checked())[Symbol.asyncDispose]();
  });
});

describe("a node that waits for another one to make the schema", () => {
  test("sees that it is there, in the transaction in which it has waited", async () => {
    const schema = newSchema();
    const url = await databaseUrl();
    const [waits, makes] = [new pg.Client(url), new pg.Client(url)];
    await Promise.all([waits.connect(), makes.connect()]);
    const session = {
      query: async ({ text }: { readonly text: string }, ...values: unknown[]) =>
        (await waits.query(text, values)).rows,
    };
    const lock = `SELECT pg_advisory_xact_lock(hashtextextended('${schema}', 0))`;
    try {
      await makes.query(`BEGIN; ${lock}`);
      expect(await readSchema(session, schema)).toEqual({ version: 0, applied: [] });
      await waits.query("BEGIN");
      const waiting = waits.query(lock);
      await makes.query(
        `CREATE SCHEMA ${schema}; CREATE TABLE ${schema}.schema_version AS SELECT 7 AS version; COMMIT`,
      );
      await waiting;
      expect(await readSchema(session, schema)).toEqual({ version: 7, applied: [] });
    } finally {
      await Promise.all([waits.end(), makes.end()]);
    }
  });
});
