/** What a call costs where the database is far away: its round trips, and no new connection. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PostgresStorage } from "../../../src/storage/postgres/storage.ts";
import type { NewTask } from "../../../src/storage/storage.ts";
import {
  attempt,
  DEPLOYMENT,
  endAttempt,
  FAILURE,
  key,
  LEASE,
  NOW_MS,
  newTask,
  openLease,
  success,
} from "../fixtures.ts";
import { CountingProxy } from "./counting-proxy.ts";
import { databaseUrl, newSchema } from "./databases.ts";

let proxy: CountingProxy;
let storage: PostgresStorage;
let connections: number;
beforeAll(async () => {
  const url = await databaseUrl();
  proxy = new CountingProxy(new URL(url));
  storage = new PostgresStorage(await proxy.listen(url), {
    schema: newSchema(),
    leaseClock: "caller",
  });
  await storage.start();
  connections = proxy.connections;
  await openLease(storage);
  // The first statements of a connection are prepared with it.
  await tripsOfSubmit({ leaseId: LEASE });
});
afterAll(async () => {
  await storage[Symbol.asyncDispose]();
  await proxy[Symbol.asyncDispose]();
});

let tasks = 0;
const idempotency = { key: "k", digest: "d" };

/** The round trips of a submit, and of the place in the queue that it answers with. */
async function tripsOfSubmit(changes: Partial<NewTask>): Promise<[submit: number, place: number]> {
  tasks += 1;
  const taskId = `t${tasks}`;
  const task = newTask(taskId, changes);
  const submitting = await proxy.trips(() => storage.submitTasks({ tasks: [task] }));
  const place = await proxy.trips(() =>
    Promise.all([
      storage.queuePosition({ ...key(taskId), nowMs: NOW_MS, limit: 10 }),
      storage.countTasks({ deploymentId: DEPLOYMENT }),
    ]),
  );
  return [submitting, place];
}

describe("round trips to Postgres", () => {
  it("are one for a task that starts at once, and three for one that waits, with its place", async () => {
    expect(await tripsOfSubmit({ leaseId: LEASE })).toEqual([1, 1]);
    expect(await tripsOfSubmit({})).toEqual([2, 1]);
    expect(await tripsOfSubmit({ runAtMs: NOW_MS + 1_000 })).toEqual([2, 1]);
  });

  it("are at most three for a key that is new, that an earlier task holds, or that it gives back", async () => {
    const running = { idempotency, leaseId: LEASE };
    expect(await tripsOfSubmit(running)).toEqual([2, 1]);
    const held = `t${tasks}`;
    expect(await tripsOfSubmit(running)).toEqual([2, 1]);
    await endAttempt(storage, attempt(held), { status: "failure", failure: FAILURE });
    expect(await tripsOfSubmit(running)).toEqual([2, 1]);
  });

  it("are one for an end, with and without what the attempt reported last", async () => {
    await tripsOfSubmit({ leaseId: LEASE });
    const first = `t${tasks}`;
    await tripsOfSubmit({ leaseId: LEASE });
    expect(await proxy.trips(() => endAttempt(storage, attempt(first), success(1)))).toBe(1);
    const body = { kind: "log", level: "info", message: "last" } as const;
    const ends = [
      { attempt: attempt(`t${tasks}`), end: success(1), events: [{ timeMs: NOW_MS, body }] },
    ];
    expect(await proxy.trips(() => storage.endAttempts({ nowMs: NOW_MS, ends }))).toBe(1);
  });

  it("open no connection beyond those of the start", () => {
    expect(proxy.connections).toBe(connections);
  });
});
