import { expect } from "vitest";
import type { Storage, TaskChange } from "../../../src/storage/storage.ts";
import type { Contract } from "../contract.ts";
import {
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
  taskIds,
} from "../fixtures.ts";

function update(storage: Storage, taskId: string, change: TaskChange, nowMs = NOW_MS) {
  return storage.updateTask({ ...key(taskId), change, nowMs });
}

export function updateContract({ it }: Contract): void {
  it("claims a task by the priority that it was given since", async (storage) => {
    await openLease(storage);
    await submit(storage, newTask("a"), newTask("b"), newTask("c", { priority: 3 }));
    const updated = await update(storage, "b", { priority: 7 });
    expect(updated).toMatchObject({ outcome: "updated", task: { priority: 7, status: "queued" } });
    expect(await storage.getTask(key("b"))).toEqual(updated?.task);
    expect(taskIds(await claim(storage))).toEqual(["b", "c", "a"]);
  });

  it("claims a task at the time that it was given since, and not before", async (storage) => {
    await openLease(storage);
    await submit(storage, newTask("now"), newTask("later", { runAtMs: NOW_MS + 9_000 }));
    await update(storage, "now", { runAtMs: NOW_MS + 500 });
    // One that has passed is now.
    const { task } = (await update(storage, "later", { runAtMs: 1 }, NOW_MS + 10)) ?? {};
    expect(task).toMatchObject({ runAtMs: NOW_MS + 10, expiresAtMs: NOW_MS + 10 + RETENTION_MS });
    const at = async (nowMs: number) => taskIds(await claim(storage, { nowMs }));
    const due = { deploymentId: "deployment-1", nowMs: NOW_MS };
    expect(await storage.nextRunAt(due)).toBe(NOW_MS + 500);
    expect(await at(NOW_MS + 499)).toEqual(["later"]);
    expect(await at(NOW_MS + 500)).toEqual(["now"]);
  });

  it("gives a task a deadline, another one, or none", async (storage) => {
    await submit(storage, newTask("a"), newTask("b", { startByMs: NOW_MS + 5 }));
    await update(storage, "a", { startByMs: NOW_MS + 9 });
    await update(storage, "b", { startByMs: null });
    const expire = async (nowMs: number) => taskIds(await storage.expireTasks({ nowMs, limit: 9 }));
    expect(await expire(NOW_MS + 8)).toEqual([]);
    expect(await expire(NOW_MS + 9)).toEqual(["a"]);
    expect(await storage.getTask(key("b"))).toMatchObject({ startByMs: undefined });
  });

  it("keeps a task after its end for as long as it was given since", async (storage) => {
    await openLease(storage);
    await submit(storage, newTask("a"));
    await update(storage, "a", { retentionMs: 5 });
    const [claimed] = await claim(storage);
    const ended = { ...key("a"), leaseId: claimed?.leaseId ?? "", attempt: 1 };
    expect(await endAttempt(storage, ended, success(1), NOW_MS + 3)).toMatchObject({
      expiresAtMs: NOW_MS + 8,
    });
  });

  it("changes nothing of a task that runs, has ended, or is not there", async (storage) => {
    const running = await startTask(storage, "a");
    const before = await storage.getTask(key("a"));
    const change = { priority: 9, runAtMs: NOW_MS + 50, startByMs: NOW_MS + 90, retentionMs: 1 };
    expect(await update(storage, "a", change)).toEqual({ outcome: "not_queued", task: before });
    const ended = await endAttempt(storage, running, success(1));
    expect(await update(storage, "a", change)).toEqual({ outcome: "not_queued", task: ended });
    expect(await update(storage, "nobody", change)).toBeUndefined();
  });
}
