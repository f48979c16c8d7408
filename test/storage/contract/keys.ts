import { expect } from "vitest";
import { WORKER_LOST } from "../../../src/tasks/failure.ts";
import type { Contract } from "../contract.ts";
import {
  attempt,
  claim,
  DEPLOYMENT,
  endAttempt,
  FAILURE,
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

export function keysContract({ it }: Contract): void {
  it("keeps the key of a task, and none for one without", async (storage) => {
    await openLease(storage);
    await submit(storage, newTask("a", { key: "Ada \"'\\ ü" }), newTask("b"));
    expect((await storage.getTask(key("a")))?.key).toBe("Ada \"'\\ ü");
    expect((await storage.getTask(key("b")))?.key).toBeUndefined();
    const claimed = await claim(storage);
    expect(claimed.map(({ task }) => task.key)).toEqual(["Ada \"'\\ ü", undefined]);
  });

  it("keeps the key over returns to the queue and after the end", async (storage) => {
    await openLease(storage);
    const stored = newTask("a", { key: "ada", leaseId: LEASE });
    const [outcome] = await storage.submitTasks({ tasks: [stored] });
    expect(outcome).toMatchObject({ task: { status: "running", key: "ada" } });
    const retry = { status: "queued", failed: true, runAtMs: NOW_MS, failure: FAILURE } as const;
    expect((await endAttempt(storage, attempt("a"), retry))?.key).toBe("ada");
    const [again] = await claim(storage);
    expect(again?.task).toMatchObject({ attempt: 2, key: "ada" });
    const ended = await endAttempt(storage, attempt("a", { attempt: 2 }), success(1));
    expect(ended?.key).toBe("ada");
    expect((await storage.getTask(key("a")))?.key).toBe("ada");
  });

  it("keeps the key of a task that was cancelled before it started", async (storage) => {
    await submit(storage, newTask("a", { key: "ada" }));
    await storage.cancelTask({ ...key("a"), nowMs: NOW_MS });
    expect(await storage.getTask(key("a"))).toMatchObject({ status: "cancelled", key: "ada" });
  });

  it("lists, finds and counts the tasks of a key", async (storage) => {
    const ended = await startTask(storage, "0", { key: "ada" });
    await endAttempt(storage, ended, success(1));
    await submit(storage, newTask("1", { key: "ada" }), newTask("2", { key: "bob" }), newTask("3"));
    const listed = await listAll(storage, { deploymentId: DEPLOYMENT, key: "ada", limit: 10 });
    expect(taskIds(listed)).toEqual(["1", "0"]);
    const search = { deploymentIds: [DEPLOYMENT], key: "ada" };
    const found = await storage.searchTasks({ ...search, limit: 10 });
    expect(taskIds(found.tasks)).toEqual(["1", "0"]);
    const queued = await storage.searchTasks({ ...search, statuses: ["queued"], limit: 10 });
    expect(taskIds(queued.tasks)).toEqual(["1"]);
    const counted = await storage.countStates({ ...search, nowMs: NOW_MS });
    expect(counted).toMatchObject({ queued: { count: 1 }, success: { count: 1 } });
  });

  it("claims the tasks of keys in turn, from the one after the last on", async (storage) => {
    await openLease(storage);
    const many = Array.from({ length: 5 }, (_, number) => newTask(`a${number}`, { key: "a" }));
    await submit(storage, ...many, newTask("b0", { key: "b" }), newTask("b1", { key: "b" }));
    await submit(storage, newTask("none", { key: "" }));
    expect(taskIds(await claim(storage, { limit: 4, byKey: {} }))).toEqual([
      ...["a0", "b0", "none", "a1"],
    ]);
    await submit(storage, newTask("c0", { key: "c" }));
    expect(taskIds(await claim(storage, { limit: 2, byKey: {} }))).toEqual(["b1", "c0"]);
    expect(taskIds(await claim(storage, { byKey: {} }))).toEqual(["a2", "a3", "a4"]);
  });

  it("claims the highest priority of a key first, then what is due longest", async (storage) => {
    await openLease(storage);
    const later = { key: "a", runAtMs: NOW_MS + 5 };
    await submit(storage, newTask("0", later), newTask("1", { key: "a" }));
    await submit(storage, newTask("2", { key: "a", priority: 1 }));
    const claimed = await claim(storage, { nowMs: NOW_MS + 10, byKey: {} });
    expect(taskIds(claimed)).toEqual(["2", "1", "0"]);
  });

  it("runs no more of a key than allowed, and the next one when one has ended", async (storage) => {
    await openLease(storage);
    await openLease(storage, "other");
    const byKey = { concurrency: 2 };
    const many = Array.from({ length: 5 }, (_, number) => newTask(`a${number}`, { key: "a" }));
    await submit(storage, ...many, newTask("b", { key: "b" }));
    expect(taskIds(await claim(storage, { byKey }))).toEqual(["a0", "b", "a1"]);
    expect(await claim(storage, { byKey, leaseId: "other" })).toEqual([]);
    await endAttempt(storage, attempt("a0"), success(1));
    expect(taskIds(await claim(storage, { byKey, leaseId: "other" }))).toEqual(["a2"]);
    const retry = { status: "queued", failed: true, runAtMs: NOW_MS, failure: FAILURE } as const;
    await endAttempt(storage, attempt("a1"), retry);
    expect(taskIds(await claim(storage, { byKey }))).toEqual(["a1"]);
    expect(await claim(storage, { byKey: { concurrency: 1 } })).toEqual([]);
  });

  it("gives the room of a key back with the lease of who ran its tasks", async (storage) => {
    await openLease(storage);
    await openLease(storage, "other");
    const byKey = { concurrency: 1 };
    await submit(storage, newTask("0", { key: "a" }), newTask("1", { key: "a" }));
    expect(taskIds(await claim(storage, { byKey }))).toEqual(["0"]);
    expect(await claim(storage, { byKey, leaseId: "other" })).toEqual([]);
    await storage.closeLease({ leaseId: LEASE, nowMs: NOW_MS });
    expect(await claim(storage, { byKey, leaseId: "other" })).toHaveLength(1);
  });

  it("counts suspects of a key, too", async (storage) => {
    await openLease(storage);
    const byKey = { concurrency: 1 };
    await submit(storage, newTask("0", { key: "a" }), newTask("1", { key: "a" }));
    await claim(storage, { byKey });
    await endAttempt(storage, attempt("0"), { status: "worker_lost", failure: WORKER_LOST });
    expect(taskIds(await claim(storage, { byKey }))).toEqual(["1"]);
    expect(await claim(storage, { byKey, suspects: true })).toEqual([]);
    await endAttempt(storage, attempt("1"), success(1));
    expect(taskIds(await claim(storage, { byKey, suspects: true }))).toEqual(["0"]);
  });

  it("takes tasks without a key that were stored before for those of one key", async (storage) => {
    await openLease(storage);
    await submit(storage, newTask("0"), newTask("1"), newTask("2", { key: "a" }));
    await submit(storage, newTask("3", { runAtMs: NOW_MS + 5 }));
    const byKey = { concurrency: 1, unkeyed: true };
    expect(taskIds(await claim(storage, { byKey })).sort()).toEqual(["0", "2"]);
    await endAttempt(storage, attempt("0"), success(1));
    expect(taskIds(await claim(storage, { byKey }))).toEqual(["1"]);
    await endAttempt(storage, attempt("1"), success(1));
    const due = { nowMs: NOW_MS + 10, byKey: { concurrency: 1 } };
    expect(taskIds(await claim(storage, due))).toEqual(["3"]);
  });

  it("claims all tasks in the order of the queue where keys do not count", async (storage) => {
    await openLease(storage);
    await submit(storage, newTask("0", { key: "b" }), newTask("1", { key: "a" }), newTask("2"));
    expect(taskIds(await claim(storage))).toEqual(["0", "1", "2"]);
  });

  it("never runs more of a key than allowed, however many claim at once", async (storage) => {
    const leases = Array.from({ length: 8 }, (_, number) => `lease-${number}`);
    await Promise.all(leases.map((leaseId) => openLease(storage, leaseId)));
    const many = Array.from({ length: 40 }, (_, number) =>
      newTask(String(number).padStart(2, "0"), { key: `k${number % 4}` }),
    );
    await submit(storage, ...many);
    const byKey = { concurrency: 3 };
    const claimed = await Promise.all(
      leases.map((leaseId) => claim(storage, { leaseId, limit: 5, byKey })),
    );
    const keys = claimed.flat().map(({ task }) => task.key);
    expect(keys.sort()).toEqual(["k0", "k1", "k2", "k3"].flatMap((one) => [one, one, one]));
  });

  it("finds the next keys among 10,000 with one task each", async (storage) => {
    await openLease(storage);
    const many = Array.from({ length: 10_000 }, (_, number) => {
      const taskId = String(number).padStart(5, "0");
      return newTask(taskId, { key: taskId, queueLimit: 20_000 });
    });
    for (let at = 0; at < many.length; at += 1_000) {
      await submit(storage, ...many.slice(at, at + 1_000));
    }
    const byKey = { concurrency: 1 };
    expect(taskIds(await claim(storage, { limit: 2, byKey }))).toEqual(["00000", "00001"]);
    expect(taskIds(await claim(storage, { limit: 2, byKey }))).toEqual(["00002", "00003"]);
  });
}
