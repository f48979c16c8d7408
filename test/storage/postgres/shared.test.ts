import pg from "pg";
import { expect, test } from "vitest";
import type { Storage, SubmitOutcome } from "../../../src/storage/storage.ts";
import {
  attempt,
  claim,
  counts,
  endAttempt,
  key,
  NOW_MS,
  newTask,
  openLease,
  submit,
  success,
  taskIds,
} from "../fixtures.ts";
import { ask, databaseUrl, newSchema, openPostgres } from "./databases.ts";

/** Two nodes on one database. */
async function openTwo(run: (a: Storage, b: Storage, schema: string) => Promise<void>) {
  const schema = newSchema();
  await using first = await openPostgres({ schema, leaseClock: "caller" });
  await using second = await openPostgres({ schema, leaseClock: "caller" });
  await run(first, second, schema);
}

test("two nodes that claim at once never claim the same task", () =>
  openTwo(async (...[a, b]) => {
    const nodes = [a, b];
    await Promise.all(nodes.map((node, index) => openLease(node, `lease-${index}`)));
    const ids = Array.from({ length: 400 }, (_, index) => `t${index}`);
    const submits = ids.map((taskId, index) => submit(nodes[index % 2] ?? a, newTask(taskId)));
    const claims = Array.from({ length: 120 }, (_, index) =>
      claim(nodes[index % 2] ?? a, { leaseId: `lease-${index % 2}`, limit: 3 }),
    );
    await Promise.all(submits);
    const rest = nodes.map((node, index) => claim(node, { leaseId: `lease-${index}`, limit: 400 }));
    const claimed = taskIds((await Promise.all([...claims, ...rest])).flat());
    // What one node was about to claim is passed over by the other.
    claimed.push(...taskIds(await claim(a, { leaseId: "lease-0", limit: 400 })));
    expect(claimed.sort()).toEqual(ids.sort());
    for (const node of nodes) {
      expect(await counts(node)).toEqual([{ endpoint: "work", queued: 0, running: 400 }]);
    }
  }));

test("a claim waits for no starts of keys that a node is about to forget", () =>
  openTwo(async (storage, _, schema) => {
    await openLease(storage);
    const byKey = { rate: { count: 1, periodMs: 60_000 } };
    await submit(storage, newTask("t0", { key: "ada" }), newTask("t1", { key: "ada" }));
    expect(taskIds(await claim(storage, { byKey }))).toEqual(["t0"]);
    const client = new pg.Client({ connectionString: await databaseUrl() });
    await client.connect();
    try {
      await client.query("BEGIN");
      const locked = await client.query(`SELECT FROM ${schema}.key_starts FOR UPDATE`);
      expect(locked.rowCount).toBe(1);
      const later = { byKey, nowMs: NOW_MS + 60_001 };
      expect(taskIds(await claim(storage, later))).toEqual(["t1"]);
    } finally {
      await client.end();
    }
  }));

test("two nodes store one task for an idempotency key that both use at once", () =>
  openTwo(async (...[a, b]) => {
    const outcomes: SubmitOutcome[] = [];
    for (let round = 0; round < 10; round++) {
      const idempotency = { key: `order-${round}`, digest: "d" };
      const calls = Array.from({ length: 8 }, (_, index) =>
        (index % 2 ? a : b).submitTasks({
          tasks: [newTask(`t${round}-${index}`, { idempotency })],
        }),
      );
      outcomes.push(...(await Promise.all(calls)).flat());
    }
    expect(outcomes.filter(({ outcome }) => outcome === "stored")).toHaveLength(10);
    expect(outcomes.filter(({ outcome }) => outcome === "replayed")).toHaveLength(70);
    expect(await counts(a)).toEqual([{ endpoint: "work", queued: 10, running: 0 }]);
  }));

test("a submit repeated while its task runs and ends elsewhere stores it once", () =>
  openTwo(async (...[a, b]) => {
    await openLease(b);
    for (let round = 0; round < 30; round++) {
      const task = newTask(`t${round}`);
      const first = a.submitTasks({ tasks: [task] });
      const live = (async () => {
        for (;;) {
          const [claimed] = await claim(b, { limit: 1 });
          if (claimed) {
            return endAttempt(b, attempt(claimed.task.taskId), success(1));
          }
        }
      })();
      const again = { ...task, repeated: true };
      const repeats = Array.from({ length: 6 }, () => a.submitTasks({ tasks: [again] }));
      await Promise.all([first, live, ...repeats]);
      expect(await a.getTask(key(task.taskId))).toMatchObject({ status: "success" });
      expect(await counts(a)).toEqual([]);
    }
  }));

test("a lease closed while tasks are stored under it leaves none behind", () =>
  openTwo(async (...[a, b, schema]) => {
    for (let round = 0; round < 20; round++) {
      const leaseId = `lease-${round}`;
      await openLease(a, leaseId);
      const submits = Array.from({ length: 10 }, (_, index) =>
        submit(a, newTask(`t${round}-${index}`, { leaseId })),
      );
      await Promise.all([...submits, b.closeLease({ leaseId, nowMs: NOW_MS })]);
    }
    const left = await ask(
      await databaseUrl(),
      `SELECT task_id FROM ${schema}.live_tasks WHERE lease_id IS NOT NULL`,
    );
    expect(left).toEqual([]);
    expect(await counts(a)).toEqual([{ endpoint: "work", queued: 200, running: 0 }]);
  }));

test("two nodes that rescue at once return each task to the queue once", () =>
  openTwo(async (...[a, b]) => {
    for (let round = 0; round < 10; round++) {
      const leaseId = `lease-${round}`;
      await openLease(a, leaseId);
      await submit(a, newTask(`t${round}`, { leaseId }));
      const nowMs = NOW_MS + 1_000_000;
      const rescued = await Promise.all([a.rescueExpired({ nowMs }), b.rescueExpired({ nowMs })]);
      expect(taskIds(rescued.flat())).toEqual([`t${round}`]);
    }
  }));

test("leases expire by the clock of the database, whatever that of a node says", async () => {
  const schema = newSchema();
  await using storage = await openPostgres({ schema });
  const hourMs = 3_600_000;
  const lease = { owner: "test", ttlMs: 20_000 };
  await storage.openLease({ ...lease, leaseId: "behind", nowMs: Date.now() - hourMs });
  expect(await storage.rescueExpired({ nowMs: Date.now() + hourMs })).toEqual([]);
  const behind = { leaseIds: ["behind"], nowMs: 0 };
  expect(await storage.renewLeases({ ...behind, ttlMs: -1 })).toEqual(["behind"]);
  const found = await storage.survey({ nowMs: 0, deploymentIds: [] });
  expect(found).toMatchObject({ expiredLeases: true });
  await storage.rescueExpired({ nowMs: 0 });
  expect(await storage.renewLeases({ ...behind, ttlMs: 1 })).toEqual([]);
});

test("counts stay right when they are folded, by several nodes at once", () =>
  openTwo(async (...[a, b]) => {
    for (let round = 0; round < 420; round++) {
      await Promise.all([
        submit(a, newTask(`a${round}`)),
        submit(b, newTask(`b${round}`, { endpoint: "other" })),
      ]);
    }
    const expected = [
      { endpoint: "other", queued: 420, running: 0 },
      { endpoint: "work", queued: 420, running: 0 },
    ];
    expect(await counts(a)).toEqual(expected);
    expect(await counts(b)).toEqual(expected);
  }));
