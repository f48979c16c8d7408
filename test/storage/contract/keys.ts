import { expect } from "vitest";
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
}
