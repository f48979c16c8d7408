import { expect } from "vitest";
import type { Storage } from "../../../src/storage/storage.ts";
import { WORKER_LOST } from "../../../src/tasks/failure.ts";
import type { Contract } from "../contract.ts";
import {
  claim,
  counts,
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

/** Marsaglia's xorshift, 32 bits (Journal of Statistical Software 8(14), 2003): always the same walk. */
function randomSource(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

async function countByReading(storage: Storage, ids: readonly string[]) {
  const found = await Promise.all(ids.map((taskId) => storage.getTask(key(taskId))));
  return ["a", "b"].flatMap((endpoint) => {
    const number = (status: string) =>
      found.filter((task) => task?.endpoint === endpoint && task.status === status).length;
    const [queued, running] = [number("queued"), number("running")];
    return queued + running > 0 ? [{ endpoint, queued, running }] : [];
  });
}

export function countsContract({ it }: Contract): void {
  it("tells what the database is", async (storage) => {
    const { kind, version, sizeBytes, schemaVersion } = await storage.describeDatabase();
    expect(kind).toBe(storage.capabilities.shared ? "Postgres" : "SQLite");
    expect(version).toMatch(/^\d+\.\d+/);
    expect(sizeBytes).toBeGreaterThan(50_000);
    expect(schemaVersion).toBeGreaterThanOrEqual(1);
  });

  it("counts what waits and what runs of all deployments together", async (storage) => {
    const before = await storage.describeDatabase();
    expect(before).toMatchObject({ queued: 0, running: 0 });
    await openLease(storage);
    await storage.submitTasks({
      tasks: [
        newTask("1"),
        newTask("2", { runAtMs: NOW_MS + 1 }),
        newTask("3", { leaseId: LEASE }),
        newTask("4", { deploymentId: "deployment-2" }),
      ],
    });
    expect(await storage.describeDatabase()).toMatchObject({ queued: 3, running: 1 });
  });

  it("counts nothing where there is nothing", async (storage) => {
    expect(await storage.countTasks({ deploymentId: "unknown" })).toEqual([]);
  });

  it("counts the tasks of each endpoint, delayed ones as queued", async (storage) => {
    await openLease(storage);
    await storage.submitTasks({
      tasks: [
        newTask("1", { endpoint: "b" }),
        newTask("2", { endpoint: "b", runAtMs: NOW_MS + 1 }),
        newTask("3", { endpoint: "a", leaseId: LEASE }),
        newTask("4", { endpoint: "a", deploymentId: "deployment-2" }),
      ],
    });
    expect(await counts(storage)).toEqual([
      { endpoint: "a", queued: 0, running: 1 },
      { endpoint: "b", queued: 2, running: 0 },
    ]);
  });

  it("answers several who ask at the same time, each with its own", async (storage) => {
    const deploymentIds = [DEPLOYMENT, "deployment-2", "unknown", DEPLOYMENT];
    await storage.submitTasks({
      tasks: [newTask("1"), newTask("2"), newTask("3", { deploymentId: "deployment-2" })],
    });
    const answers = await Promise.all(
      deploymentIds.map((deploymentId) => storage.countTasks({ deploymentId })),
    );
    expect(answers.map((counts) => counts.map(({ queued }) => queued))).toEqual([
      ...[[2], [1], [], [2]],
    ]);
  });

  it("counts the tasks that are due, delayed ones when their time has come", async (storage) => {
    await openLease(storage);
    await storage.submitTasks({
      tasks: [
        newTask("1", { endpoint: "b" }),
        newTask("2", { endpoint: "b" }),
        newTask("3", { endpoint: "b", runAtMs: NOW_MS + 10 }),
        newTask("4", { endpoint: "a", leaseId: LEASE }),
        newTask("5", { endpoint: "c", runAtMs: NOW_MS + 20 }),
        newTask("6", { endpoint: "c", startByMs: NOW_MS + 5 }),
      ],
    });
    const due = async (afterMs: number, limit = 10) => {
      const nowMs = NOW_MS + afterMs;
      const counted = await storage.countDue({ deploymentId: DEPLOYMENT, nowMs, limit });
      return Object.fromEntries(counted.map((count) => [count.endpoint, count.due]));
    };
    expect(await due(0)).toEqual({ b: 2, c: 1 });
    expect(await due(9)).toEqual({ b: 2 });
    expect(await due(10)).toEqual({ b: 3 });
    expect(await due(20, 2)).toEqual({ b: 2, c: 1 });
    expect(await storage.countDue({ deploymentId: "unknown", nowMs: NOW_MS, limit: 9 })).toEqual(
      [],
    );
  });

  it("tells since when the oldest task that is due has been waiting, whatever its priority", async (storage) => {
    await openLease(storage);
    await storage.submitTasks({
      tasks: [
        newTask("1", { endpoint: "a", priority: 100, runAtMs: NOW_MS - 10 }),
        newTask("2", { endpoint: "a", priority: 100, runAtMs: NOW_MS - 20 }),
        newTask("3", { endpoint: "a", priority: 0, runAtMs: NOW_MS - 5 }),
        newTask("4", { endpoint: "a", priority: -100, runAtMs: NOW_MS - 40 }),
        newTask("5", { endpoint: "b", runAtMs: NOW_MS + 10 }),
        newTask("6", { endpoint: "c", leaseId: LEASE }),
        newTask("7", { endpoint: "d", deploymentId: "deployment-2" }),
      ],
    });
    const oldest = async (nowMs: number) => {
      const found = await storage.oldestWaiting({ deploymentId: DEPLOYMENT, nowMs });
      return Object.fromEntries(found.map(({ endpoint, dueAtMs }) => [endpoint, dueAtMs - NOW_MS]));
    };
    expect(await oldest(NOW_MS)).toEqual({ a: -40 });
    expect(await oldest(NOW_MS + 10)).toEqual({ a: -40, b: 10 });
    expect(await storage.oldestWaiting({ deploymentId: "unknown", nowMs: NOW_MS })).toEqual([]);
  });

  it("tells the queues of several deployments, those that are empty left out", async (storage) => {
    await openLease(storage);
    await storage.submitTasks({
      tasks: [
        newTask("1", { endpoint: "a", priority: 100, runAtMs: NOW_MS - 10 }),
        newTask("2", { endpoint: "a", priority: -100, runAtMs: NOW_MS - 40 }),
        newTask("3", { endpoint: "a", leaseId: LEASE }),
        newTask("4", { endpoint: "b", runAtMs: NOW_MS + 10 }),
        newTask("5", { endpoint: "a", deploymentId: "deployment-2", runAtMs: NOW_MS - 5 }),
        newTask("6", { endpoint: "c", deploymentId: "deployment-3" }),
        newTask("7", { endpoint: "done", leaseId: LEASE }),
      ],
    });
    await endAttempt(storage, { ...key("7"), leaseId: LEASE, attempt: 1 }, success("7"));
    const deploymentIds = [DEPLOYMENT, "deployment-2", "unknown"];
    const found = await storage.queueStates({ deploymentIds, nowMs: NOW_MS });
    const sorted = found.toSorted((one, other) =>
      one.deploymentId + one.endpoint < other.deploymentId + other.endpoint ? -1 : 1,
    );
    expect(sorted).toEqual([
      {
        deploymentId: DEPLOYMENT,
        endpoint: "a",
        queued: 2,
        running: 1,
        oldestDueAtMs: NOW_MS - 40,
      },
      {
        deploymentId: DEPLOYMENT,
        endpoint: "b",
        queued: 1,
        running: 0,
        oldestDueAtMs: undefined,
      },
      {
        deploymentId: "deployment-2",
        endpoint: "a",
        queued: 1,
        running: 0,
        oldestDueAtMs: NOW_MS - 5,
      },
    ]);
    expect(await storage.queueStates({ deploymentIds: [], nowMs: NOW_MS })).toEqual([]);
  });

  it("counts what there is, whatever happened before", async (storage) => {
    const random = randomSource(20_250_615);
    const ids: string[] = [];
    for (let step = 0; step < 300; step++) {
      const endpoint = random(2) ? "a" : "b";
      const nowMs = NOW_MS + step;
      await [
        () => openLease(storage, LEASE, nowMs),
        () => {
          ids.push(`t${step}`);
          const runAtMs = nowMs + random(2) * 10;
          const task = newTask(`t${step}`, { endpoint, createdAtMs: nowMs, runAtMs });
          const queueLimit = random(6);
          const lease = random(2) ? { leaseId: LEASE } : {};
          return storage.submitTasks({ tasks: [{ ...task, queueLimit, ...lease }] });
        },
        () => claim(storage, { endpoint, limit: random(3), nowMs, suspects: random(2) === 0 }),
        async () => {
          const task = await storage.getTask(key(ids[random(ids.length || 1)] ?? "none"));
          const ended = { ...key(task?.taskId ?? "none"), leaseId: LEASE };
          const ends = [
            success(1),
            { status: "cancelled" },
            { status: "worker_lost", failure: WORKER_LOST },
            { status: "queued", runAtMs: nowMs + random(2) * 5, failed: true, failure: FAILURE },
          ] as const;
          const end = ends[random(ends.length)] ?? ends[0];
          return endAttempt(storage, { ...ended, attempt: task?.attempt ?? 0 }, end, nowMs);
        },
        () => storage.cancelTask({ ...key(ids[random(ids.length || 1)] ?? "none"), nowMs }),
        () => (random(4) ? undefined : storage.rescueExpired({ nowMs, all: true })),
        () => storage.pruneFinished({ nowMs: NOW_MS * 2, limit: random(3) }),
      ][random(7)]?.();
    }
    expect(await counts(storage, DEPLOYMENT)).toEqual(await countByReading(storage, ids));
  });
}
