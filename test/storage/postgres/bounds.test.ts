import pg from "pg";
import { describe, expect, it } from "vitest";
import { KEY_TIME_MS } from "../../../src/storage/claims-by-key.ts";
import { PostgresStorage } from "../../../src/storage/postgres/storage.ts";
import type { Storage } from "../../../src/storage/storage.ts";
import { WORKER_LOST } from "../../../src/tasks/failure.ts";
import {
  attempt,
  claim,
  endAttempt,
  key,
  NOW_MS,
  newTask,
  openLease,
  RETENTION_MS,
  startTask,
  submit,
  success,
} from "../fixtures.ts";
import { ask, newDatabase } from "./databases.ts";

const LIMIT = 2;
const IDS = ["a", "b", "c", "d", "e"];

/** A storage whose planner runs what stands in a subquery for each row of the query around it. */
async function openWithLoops(): Promise<PostgresStorage> {
  const url = await newDatabase();
  const name = new URL(url).pathname.slice(1);
  for (const plan of ["hashjoin", "mergejoin", "hashagg", "sort", "material", "memoize"]) {
    await ask(url, `ALTER DATABASE ${name} SET enable_${plan} = off`);
  }
  const storage = new PostgresStorage(url, { connections: 3, leaseClock: "caller" });
  await storage.start();
  return storage;
}

it("takes no more than it is asked for, whatever the planner makes of it", async () => {
  await using storage = await openWithLoops();
  await storage.registerBlobs({ blobIds: IDS, deleteAfterMs: NOW_MS });
  const dead = await storage.takeDeadBlobs({ nowMs: NOW_MS, againMs: NOW_MS + 1, limit: LIMIT });
  expect(dead).toHaveLength(LIMIT);
  for (const taskId of IDS) {
    await endAttempt(storage, await startTask(storage, taskId), success(1));
  }
  const nowMs = NOW_MS + RETENTION_MS;
  expect(await storage.pruneFinished({ nowMs, limit: LIMIT })).toBe(LIMIT);
  const late = ["f", "g", "h", "i", "j"];
  await submit(storage, ...late.map((taskId) => newTask(taskId, { startByMs: NOW_MS + 1 })));
  expect(await storage.expireTasks({ nowMs: NOW_MS + 2, limit: LIMIT })).toHaveLength(LIMIT);
  await storage.deleteTasks({ deploymentId: key("f").deploymentId, taskIds: late, nowMs: NOW_MS });
  const left = await Promise.all(late.map((taskId) => storage.findDeleted(key(taskId))));
  expect(left).not.toContain(undefined);
  await storage.pruneFinished({ nowMs: NOW_MS + 10 * RETENTION_MS, limit: LIMIT });
  const after = await Promise.all(late.map((taskId) => storage.findDeleted(key(taskId))));
  expect(after.filter((one) => one === undefined)).toHaveLength(LIMIT);
});

describe("goes on where the prune before has ended that found as many as it may, and begins anew then", () => {
  const EXPIRED_MS = NOW_MS + 2 * RETENTION_MS;
  const finish = async (storage: Storage) => {
    for (const [index, taskId] of ["a", "b", "c", "d"].entries()) {
      await endAttempt(storage, await startTask(storage, taskId), success(1), NOW_MS + index);
    }
  };

  it.each([
    {
      what: "what has expired",
      table: "finished_tasks",
      store: finish,
      prune: (storage: Storage) => storage.pruneFinished({ nowMs: EXPIRED_MS, limit: LIMIT }),
    },
    {
      what: "tasks that were deleted before their time",
      table: "deleted_tasks",
      store: async (storage: Storage) => {
        for (const [index, taskId] of ["a", "b", "c", "d"].entries()) {
          await submit(storage, newTask(taskId));
          const { deploymentId } = key(taskId);
          await storage.deleteTasks({ deploymentId, taskIds: [taskId], nowMs: NOW_MS + index });
        }
      },
      prune: (storage: Storage) => storage.pruneFinished({ nowMs: EXPIRED_MS, limit: LIMIT }),
      find: (storage: Storage) => storage.findDeleted(key("a")),
    },
    {
      what: "ended tasks of a deleted deployment",
      table: "finished_tasks",
      store: finish,
      prune: (storage: Storage) => storage.pruneDeleted({ nowMs: NOW_MS, limit: LIMIT }),
    },
    {
      what: "waiting tasks of a deleted deployment",
      table: "live_tasks",
      store: (storage: Storage) =>
        submit(storage, ...["a", "b", "c", "d"].map((taskId) => newTask(taskId))),
      prune: (storage: Storage) => storage.pruneDeleted({ nowMs: NOW_MS, limit: LIMIT }),
    },
  ])("$what", async ({ table, store, prune, find = (storage) => storage.getTask(key("a")) }) => {
    const url = await newDatabase();
    await using storage = new PostgresStorage(url, { connections: 3, leaseClock: "caller" });
    await storage.start();
    await store(storage);
    const schema = await schemaOf(url, table);
    await ask(
      url,
      `INSERT INTO ${schema}.deleted_deployments
       VALUES ('organization', '${key("a").deploymentId}', ${NOW_MS}, ${NOW_MS})`,
    );
    const other = new pg.Client(url);
    await other.connect();
    try {
      await other.query("BEGIN");
      await other.query(`SELECT 1 FROM ${schema}.${table} WHERE task_id = 'a' FOR UPDATE`);
      expect(await prune(storage)).toBe(LIMIT);
      await other.query("ROLLBACK");
      expect(await prune(storage)).toBe(1);
      expect(await find(storage)).toBeDefined();
      expect(await prune(storage)).toBe(1);
      expect(await find(storage)).toBeUndefined();
      expect(await prune(storage)).toBe(0);
    } finally {
      await other.end();
    }
  });
});

it("begins anew after a minute, also where each prune finds as many as it may", async () => {
  await using storage = new PostgresStorage(await newDatabase(), {
    connections: 3,
    leaseClock: "caller",
  });
  await storage.start();
  const end = async (taskId: string, nowMs: number) =>
    endAttempt(storage, await startTask(storage, taskId), success(1), nowMs);
  for (const [index, taskId] of IDS.entries()) {
    await end(taskId, NOW_MS + 10 + index);
  }
  const nowMs = NOW_MS + 2 * RETENTION_MS;
  expect(await storage.pruneFinished({ nowMs, limit: LIMIT })).toBe(LIMIT);
  // It comes late, and expired before those that are gone.
  await end("late", NOW_MS);
  expect(await storage.pruneFinished({ nowMs, limit: LIMIT })).toBe(LIMIT);
  expect(await storage.getTask(key("late"))).toBeDefined();
  await end("more", NOW_MS + 20);
  expect(await storage.pruneFinished({ nowMs: nowMs + 60_001, limit: LIMIT })).toBe(LIMIT);
  expect(await storage.getTask(key("late"))).toBeUndefined();
});

it("moves no earlier starts of a key when it takes one away", async () => {
  const url = await newDatabase();
  await using storage = new PostgresStorage(url, { connections: 3, leaseClock: "caller" });
  await storage.start();
  await openLease(storage);
  await submit(storage, ...IDS.map((taskId) => newTask(taskId, { key: "k" })));
  const byKey = { rate: { count: 10, periodMs: 60_000 } };
  expect(await claim(storage, { byKey, limit: 3 })).toHaveLength(3);
  expect(await claim(storage, { byKey, nowMs: NOW_MS + 1, limit: 2 })).toHaveLength(2);
  const schema = await schemaOf(url, "key_starts");
  const starts = () =>
    ask(url, `SELECT number, started_at_ms, xmin::text FROM ${schema}.key_starts ORDER BY number`);
  const before = await starts();
  const unbegun = { status: "failure", failure: WORKER_LOST, unbegun: true } as const;
  await endAttempt(storage, attempt("d"), unbegun);
  expect(await claim(storage, { byKey, nowMs: NOW_MS + 2 })).toEqual([]);
  const after = await starts();
  expect(after).toHaveLength(4);
  expect(after.slice(0, 3)).toEqual(before.slice(0, 3));
  expect(after[3]).toMatchObject({ started_at_ms: String(NOW_MS + 1) });
});

async function schemaOf(url: string, table: string): Promise<string> {
  const [found] = await ask(url, `SELECT schemaname FROM pg_tables WHERE tablename = '${table}'`);
  return String(found?.schemaname);
}

it("prunes runs of keys as many at a time as it may, and passes over those that a claim counts", async () => {
  const url = await newDatabase();
  await using storage = new PostgresStorage(url, { connections: 3, leaseClock: "caller" });
  await storage.start();
  const runs = `${await schemaOf(url, "key_runs")}.key_runs`;
  await ask(
    url,
    `INSERT INTO ${runs} (deployment_id, endpoint, key, run_ms, ended_at_ms)
     SELECT 'd', 'work', key, 1, ${NOW_MS} FROM unnest('{a,b,c,d}'::text[]) AS key`,
  );
  const claim = new pg.Client(url);
  await claim.connect();
  try {
    await claim.query("BEGIN");
    await claim.query(`DELETE FROM ${runs} WHERE key = 'a'`);
    const pruning = { nowMs: NOW_MS + KEY_TIME_MS, limit: LIMIT };
    expect(await storage.pruneFinished(pruning)).toBe(LIMIT);
    expect(await storage.pruneFinished(pruning)).toBe(1);
    expect(await storage.pruneFinished(pruning)).toBe(0);
    await claim.query("ROLLBACK");
    expect(await ask(url, `SELECT key FROM ${runs}`)).toEqual([{ key: "a" }]);
  } finally {
    await claim.end();
  }
});
