import pg from "pg";
import { describe, expect, test } from "vitest";
import { PostgresStorage } from "../../../src/storage/postgres/storage.ts";
import { startPostgres } from "../../postgres.ts";
import { counts, key, newTask } from "../fixtures.ts";
import { ask, databaseUrl, newSchema, openPostgres } from "./databases.ts";
import { SilentProxy } from "./proxy.ts";

const UNAVAILABLE = { reason: "STORAGE_UNAVAILABLE", retryAfterMs: 1_000 };

/** Holds the live tasks' table, so that every write waits. */
async function lockTasks(schema: string): Promise<() => Promise<void>> {
  const client = new pg.Client(await databaseUrl());
  await client.connect();
  await client.query(`BEGIN; LOCK TABLE ${schema}.live_tasks IN ACCESS EXCLUSIVE MODE`);
  return () => client.end();
}

/** Ends the backends of this storage that wait for the lock, once there are some. */
async function terminateWaiting(schema: string): Promise<void> {
  const url = await databaseUrl();
  const terminated = async (): Promise<number> => {
    const ended = await ask(
      url,
      `SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid)
       WHERE NOT granted AND relation = '${schema}.live_tasks'::regclass`,
    );
    return ended.length;
  };
  await expect.poll(terminated).toBeGreaterThan(0);
}

describe("losing Postgres", () => {
  test("a backend that is terminated fails its call, and the next call works", async () => {
    const schema = newSchema();
    await using storage = await openPostgres({ schema });
    const release = await lockTasks(schema);
    const submit = () => storage.submitTasks({ tasks: [newTask("a")] });
    const cut = expect(submit()).rejects.toMatchObject(UNAVAILABLE);
    await terminateWaiting(schema);
    await cut;
    await release();
    expect(await submit()).toMatchObject([{ outcome: "stored", task: { status: "queued" } }]);
    expect(await counts(storage)).toEqual([{ endpoint: "work", queued: 1, running: 0 }]);
  });

  test("idle backends that are terminated are not noticed", async () => {
    const schema = newSchema();
    await using storage = await openPostgres({ schema });
    const reads = () => Promise.all(Array.from({ length: 6 }, () => storage.getTask(key("a"))));
    await reads();
    const url = await databaseUrl();
    await ask(
      url,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE application_name = 'tessera' AND datname = current_database()`,
    );
    await expect.poll(reads).toHaveLength(6);
  });

  test("a statement that takes too long fails its call in time", async () => {
    const schema = newSchema();
    await using storage = await openPostgres({ schema, timeoutMs: 300 });
    const release = await lockTasks(schema);
    const calls = ["a", "b"].map((taskId) => storage.submitTasks({ tasks: [newTask(taskId)] }));
    for (const result of await Promise.allSettled([...calls, storage.getTask(key("a"))])) {
      expect(result).toMatchObject({ status: "rejected", reason: UNAVAILABLE });
    }
    await release();
    const tasks = [newTask("a")];
    expect(await storage.submitTasks({ tasks })).toMatchObject([{ outcome: "stored" }]);
  });

  test("a server that goes silent fails calls in time, and serves again when it speaks", async () => {
    const url = await databaseUrl();
    await using proxy = new SilentProxy(new URL(url));
    await using storage = new PostgresStorage(await proxy.listen(url), {
      schema: newSchema(),
      timeoutMs: 300,
    });
    await storage.start();
    await storage.submitTasks({ tasks: [newTask("a")] });
    proxy.silence();
    const begunMs = performance.now();
    const settled = await Promise.allSettled([
      storage.getTask(key("a")),
      ...["b", "c"].map((taskId) => storage.submitTasks({ tasks: [newTask(taskId)] })),
    ]);
    for (const result of settled) {
      expect(result).toMatchObject({ status: "rejected", reason: UNAVAILABLE });
    }
    expect(performance.now() - begunMs).toBeLessThan(5_000);
    proxy.speak();
    expect(await storage.getTask(key("a"))).toMatchObject({ status: "queued" });
    const tasks = [newTask("b")];
    expect(await storage.submitTasks({ tasks })).toMatchObject([{ outcome: "stored" }]);
  });

  test("ends in time although the server is silent", async () => {
    const url = await databaseUrl();
    await using proxy = new SilentProxy(new URL(url));
    const storage = new PostgresStorage(await proxy.listen(url), {
      schema: newSchema(),
      timeoutMs: 3_000,
    });
    await storage.start();
    proxy.silence();
    await storage[Symbol.asyncDispose]();
  }, 30_000);

  test("a server that is restarted serves again, with all that was acknowledged", async () => {
    await using server = await startPostgres({ durable: true });
    await using storage = new PostgresStorage(server.url);
    await storage.start();
    const submit = (taskId: string) => storage.submitTasks({ tasks: [newTask(taskId)] });
    await submit("a");
    await server.stop();
    await expect(submit("b")).rejects.toMatchObject(UNAVAILABLE);
    await expect(storage.getTask(key("a"))).rejects.toMatchObject(UNAVAILABLE);
    await server.start();
    expect(await storage.getTask(key("a"))).toMatchObject({ status: "queued" });
    expect(await submit("b")).toMatchObject([{ outcome: "stored" }]);
  });

  test("one impossible call fails alone", async () => {
    await using storage = await openPostgres({ schema: newSchema() });
    const impossible = { ...newTask("impossible"), createdAtMs: Number.NaN };
    const settled = await Promise.allSettled(
      [newTask("a"), impossible, newTask("b")].map((task) =>
        storage.submitTasks({ tasks: [task] }),
      ),
    );
    expect(settled.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(settled[1]).not.toMatchObject({ reason: UNAVAILABLE });
    expect(await counts(storage)).toEqual([{ endpoint: "work", queued: 2, running: 0 }]);
  });
});
