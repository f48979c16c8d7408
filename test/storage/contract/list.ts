import { expect } from "vitest";
import type { TaskListing } from "../../../src/storage/listing.ts";
import type { Storage } from "../../../src/storage/storage.ts";
import type { Contract } from "../contract.ts";
import {
  claim,
  DEPLOYMENT,
  endAttempt,
  key,
  LEASE,
  listAll,
  NOW_MS,
  newTask,
  openLease,
  startTask,
  submit,
  success,
  taskIds,
} from "../fixtures.ts";

type Filter = Omit<TaskListing, "deploymentId" | "limit">;

async function list(storage: Storage, filter: Filter = {}, limit = 100): Promise<string[]> {
  return taskIds(await listAll(storage, { deploymentId: DEPLOYMENT, limit, ...filter }));
}

/** Tasks `t00`, `t01` and so on, accepted a second apart. */
function series(count: number) {
  return Array.from({ length: count }, (_, index) =>
    newTask(`t${String(index).padStart(2, "0")}`, { createdAtMs: NOW_MS + index * 1_000 }),
  );
}

export function listContract({ it }: Contract): void {
  it("lists nothing where there is nothing", async (storage) => {
    const page = await storage.listTasks({ deploymentId: "unknown", limit: 10 });
    expect(page).toEqual({ tasks: [], nextBefore: undefined });
  });

  it("lists the tasks of a deployment as a read gives them, newest first", async (storage) => {
    await submit(storage, ...series(3), newTask("x", { deploymentId: "deployment-2" }));
    await endAttempt(storage, await startTask(storage, "t99"), success(1));
    const { tasks, nextBefore } = await storage.listTasks({ deploymentId: DEPLOYMENT, limit: 10 });
    expect(taskIds(tasks)).toEqual(["t99", "t02", "t01", "t00"]);
    expect(nextBefore).toBeUndefined();
    for (const task of tasks) {
      expect(task).toEqual(await storage.getTask(key(task.taskId)));
    }
  });

  it("gives every task on exactly one page, whatever the size of the pages", async (storage) => {
    await submit(storage, ...series(12));
    const ids = series(12).map(({ taskId }) => taskId);
    for (const limit of [1, 3, 5, 12, 13]) {
      expect(await list(storage, {}, limit), `${limit} a page`).toEqual(ids.toReversed());
    }
  });

  it("goes on where a page ended, although tasks came and went", async (storage) => {
    await submit(storage, ...series(6));
    const first = await storage.listTasks({ deploymentId: DEPLOYMENT, limit: 2 });
    expect(taskIds(first.tasks)).toEqual(["t05", "t04"]);
    await submit(storage, newTask("t98"));
    await storage.cancelTask({ ...key("t04"), nowMs: NOW_MS });
    await storage.cancelTask({ ...key("t03"), nowMs: NOW_MS });
    await storage.pruneFinished({ nowMs: NOW_MS * 2, limit: 10 });
    const before = first.nextBefore ?? "";
    expect(await list(storage, { before })).toEqual(["t02", "t01", "t00"]);
  });

  it("lists only tasks in the state that was asked for", async (storage) => {
    await openLease(storage);
    await submit(
      storage,
      ...["a", "b", "c", "d", "e"].map((taskId) => newTask(taskId, { leaseId: LEASE })),
      newTask("delayed", { runAtMs: NOW_MS + 1_000 }),
      newTask("waiting"),
    );
    const failure = { reason: "error", code: "internal", message: "no" } as const;
    const ends = [success(1), { status: "failure", failure }, { status: "cancelled" }] as const;
    for (const [index, end] of ends.entries()) {
      await endAttempt(storage, { ...key("abc"[index] ?? ""), leaseId: LEASE, attempt: 1 }, end);
    }
    expect(await list(storage, { status: "success" })).toEqual(["a"]);
    expect(await list(storage, { status: "failure" })).toEqual(["b"]);
    expect(await list(storage, { status: "cancelled" })).toEqual(["c"]);
    expect(await list(storage, { status: "running" })).toEqual(["e", "d"]);
    expect(await list(storage, { status: "queued" })).toEqual(["waiting", "delayed"]);
  });

  it("lists only tasks of the endpoint and the time that were asked for", async (storage) => {
    const tasks = series(6).map((task, index) => ({
      ...task,
      endpoint: index % 2 ? "odd" : "even",
    }));
    await submit(storage, ...tasks);
    expect(await list(storage, { endpoint: "odd" }, 2)).toEqual(["t05", "t03", "t01"]);
    expect(await list(storage, { endpoint: "other" })).toEqual([]);
    const [createdFromMs, createdBeforeMs] = [NOW_MS + 1_000, NOW_MS + 4_000];
    expect(await list(storage, { createdFromMs })).toEqual(["t05", "t04", "t03", "t02", "t01"]);
    expect(await list(storage, { createdBeforeMs })).toEqual(["t03", "t02", "t01", "t00"]);
    expect(await list(storage, { createdFromMs, createdBeforeMs }, 1)).toEqual([
      ...["t03", "t02", "t01"],
    ]);
    const all: Filter = { createdFromMs, createdBeforeMs, endpoint: "even", status: "queued" };
    expect(await list(storage, all)).toEqual(["t02"]);
  });

  it("finds a single task among many that do not fit", async (storage) => {
    const many = Array.from({ length: 6_000 }, (_, index) =>
      newTask(`t${String(index).padStart(4, "0")}`, { queueLimit: 10_000 }),
    );
    await submit(storage, newTask("rare", { endpoint: "rare" }));
    for (let first = 0; first < many.length; first += 1_000) {
      await submit(storage, ...many.slice(first, first + 1_000));
    }
    await submit(storage, newTask("a-first", { endpoint: "rare" }));
    expect(await list(storage, { endpoint: "rare" }, 1)).toEqual(["rare", "a-first"]);
  });

  it("tells how many tasks would be claimed before one, in the order of claims", async (storage) => {
    await openLease(storage);
    await submit(
      storage,
      newTask("low", { priority: -1 }),
      newTask("second", { runAtMs: NOW_MS - 1 }),
      newTask("high", { priority: 3 }),
      newTask("first", { runAtMs: NOW_MS - 2 }),
      newTask("other", { endpoint: "other", priority: 9 }),
      newTask("elsewhere", { deploymentId: "deployment-2", priority: 9 }),
    );
    const position = (taskId: string, limit = 100) =>
      storage.queuePosition({ ...key(taskId), nowMs: NOW_MS, limit });
    for (const [index, taskId] of ["high", "first", "second", "low"].entries()) {
      expect(await position(taskId), taskId).toBe(index);
    }
    expect(await position("other")).toBe(0);
    expect(await position("low", 2)).toBe(2);
    expect(taskIds(await claim(storage, { limit: 2 }))).toEqual(["high", "first"]);
    expect(await position("second")).toBe(0);
    expect(await position("low")).toBe(1);
  });

  it("tells no position of a task that does not wait to be claimed", async (storage) => {
    const position = (taskId: string) =>
      storage.queuePosition({ ...key(taskId), nowMs: NOW_MS, limit: 10 });
    await startTask(storage, "running");
    await submit(
      storage,
      newTask("delayed", { runAtMs: NOW_MS + 1 }),
      newTask("expired", { startByMs: NOW_MS }),
      newTask("cancelled"),
    );
    await storage.cancelTask({ ...key("cancelled"), nowMs: NOW_MS });
    for (const taskId of ["running", "delayed", "expired", "cancelled", "nothing"]) {
      expect(await position(taskId), taskId).toBeUndefined();
    }
  });

  it("tells the position of a delayed task once it is due, and counts it for others, before any claim", async (storage) => {
    const dueMs = NOW_MS + 1_000;
    await openLease(storage);
    await submit(
      storage,
      newTask("ready", { priority: -1 }),
      newTask("due", { runAtMs: dueMs }),
      newTask("due-long", { runAtMs: dueMs - 1 }),
      newTask("due-high", { runAtMs: dueMs, priority: 1 }),
      newTask("due-and-expired", { runAtMs: dueMs - 2, startByMs: dueMs }),
      newTask("not-due", { runAtMs: dueMs + 1, priority: 9 }),
    );
    const position = (taskId: string, nowMs: number, limit = 10) =>
      storage.queuePosition({ ...key(taskId), nowMs, limit });
    expect(await position("due-long", dueMs - 2)).toBeUndefined();
    expect(await position("ready", dueMs - 2, 1)).toBe(1);
    const order = ["due-high", "due-long", "due", "ready"];
    for (const [index, taskId] of order.entries()) {
      expect(await position(taskId, dueMs), taskId).toBe(index);
    }
    expect(await position("ready", dueMs, 2)).toBe(2);
    expect(taskIds(await claim(storage, { nowMs: dueMs, limit: 1 }))).toEqual(["due-high"]);
    expect(await position("due", dueMs)).toBe(1);
    expect(taskIds(await claim(storage, { nowMs: dueMs }))).toEqual(order.slice(1));
  });
}
