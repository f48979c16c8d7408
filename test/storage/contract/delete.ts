import { expect } from "vitest";
import type { NewTask, Storage } from "../../../src/storage/storage.ts";
import type { Contract } from "../contract.ts";
import {
  claim,
  counts,
  DEPLOYMENT,
  endAttempt,
  key,
  NOW_MS,
  newTask,
  RETENTION_MS,
  startTask,
  submit,
  success,
} from "../fixtures.ts";

const IDEMPOTENT: Partial<NewTask> = { idempotency: { key: "order-7", digest: "d1" } };

function remove(storage: Storage, ...taskIds: readonly string[]) {
  return storage.deleteTasks({ deploymentId: DEPLOYMENT, taskIds, nowMs: NOW_MS + 5 });
}

export function deleteContract({ it }: Contract): void {
  it("deletes what waits or has ended, in the order of its question, and leaves what runs", async (storage) => {
    await endAttempt(storage, await startTask(storage, "ended"), success(1));
    const running = await startTask(storage, "running");
    const later = { createdAtMs: NOW_MS, runAtMs: NOW_MS + 1_000 };
    await submit(storage, newTask("queued"), newTask("later", later), newTask("kept"));
    expect(await remove(storage, "running", "queued", "nobody", "ended", "later")).toEqual([
      ...["running", "deleted", "not_found", "deleted", "deleted"],
    ]);
    for (const taskId of ["queued", "ended", "later"]) {
      expect(await storage.getTask(key(taskId))).toBeUndefined();
    }
    expect(await counts(storage)).toEqual([{ endpoint: "work", queued: 1, running: 1 }]);
    expect(await endAttempt(storage, running, success(2))).toMatchObject({ status: "success" });
    expect((await claim(storage)).map(({ task }) => task.taskId)).toEqual(["kept"]);
    expect(await remove(storage, "ended")).toEqual(["not_found"]);
  });

  it("deletes a task that ends at the same moment", async (storage) => {
    const taskIds = Array.from({ length: 40 }, (_, number) => `t-${number}`);
    await submit(storage, ...taskIds.map((taskId) => newTask(taskId)));
    const outcomes = taskIds.map(async (taskId) => {
      const ending = storage.cancelTask({ ...key(taskId), nowMs: NOW_MS });
      const [outcome] = await remove(storage, taskId);
      await ending;
      return outcome;
    });
    expect(new Set(await Promise.all(outcomes))).toEqual(new Set(["deleted"]));
    expect(await counts(storage)).toEqual([]);
  });

  it("deletes each task once, where two ask for the same in another order", async (storage) => {
    const taskIds = Array.from({ length: 200 }, (_, number) => `t-${number}`);
    await submit(storage, ...taskIds.map((taskId) => newTask(taskId)));
    const asked = [taskIds, taskIds.toReversed(), taskIds, taskIds.toReversed()];
    const outcomes = await Promise.all(asked.map((ids) => remove(storage, ...ids)));
    expect(outcomes.flat().filter((outcome) => outcome === "deleted")).toHaveLength(200);
    expect(outcomes.flat().filter((outcome) => outcome === "not_found")).toHaveLength(600);
    expect(await counts(storage)).toEqual([]);
  });

  it("deletes a task again that was submitted again under its id, beside others", async (storage) => {
    await submit(storage, newTask("a"));
    await remove(storage, "a");
    await submit(storage, newTask("a"), newTask("b"));
    expect(await remove(storage, "b", "a")).toEqual(["deleted", "deleted"]);
    expect(await storage.findDeleted(key("a"))).toBe(NOW_MS + 5);
    expect(await counts(storage)).toEqual([]);
  });

  it("deletes only of its own deployment", async (storage) => {
    const other = "deployment-2";
    await submit(storage, newTask("a"), newTask("a", { deploymentId: other }));
    await remove(storage, "a");
    expect(await storage.getTask(key("a", other))).toBeDefined();
    expect(await storage.findDeleted(key("a", other))).toBeUndefined();
  });

  it("deletes all that belongs to a task", async (storage) => {
    const large = { json: "[0]", files: [{ contentType: "text/plain", data: new Uint8Array(9) }] };
    const running = await startTask(storage, "a", { ...IDEMPOTENT, arguments: large });
    const body = { kind: "log", level: "info", message: "x" } as const;
    await storage.recordEvents({ events: [{ attempt: running, timeMs: NOW_MS, body }] });
    const pieces = { attempt: running, form: "text", first: 1, pieces: ["x"] } as const;
    await storage.appendPieces({ appends: [pieces] });
    await endAttempt(storage, running, { status: "success", result: large });
    await remove(storage, "a");
    expect(await storage.getArguments(key("a"))).toBeUndefined();
    expect(await storage.getResult(key("a"))).toBeUndefined();
    // Its idempotency key is free, and nothing of before is under the same id.
    const [again] = await storage.submitTasks({ tasks: [newTask("a", IDEMPOTENT)] });
    expect(again).toMatchObject({ outcome: "stored", task: { status: "queued" } });
    const question = { ...key("a"), afterSequence: 0, limit: 10 };
    expect(await storage.getHistory(question)).toMatchObject({ stored: [], lastPiece: 0 });
  });

  it("frees the idempotency key and the large arguments of one that waits", async (storage) => {
    const large = { json: JSON.stringify("x".repeat(5_000)), files: [] };
    await submit(storage, newTask("a", { ...IDEMPOTENT, arguments: large }));
    await remove(storage, "a");
    expect(await storage.getArguments(key("a"))).toBeUndefined();
    const [again] = await storage.submitTasks({ tasks: [newTask("b", IDEMPOTENT)] });
    expect(again).toMatchObject({ outcome: "stored" });
  });

  it("has blobs die that no other task refers to", async (storage) => {
    const blobIds = ["shared", "own"];
    await storage.registerBlobs({ blobIds, deleteAfterMs: NOW_MS + 1_000_000 });
    const fileOf = (blobId: string) => ({
      contentType: "text/plain",
      blob: { blobId, size: 5, sha256: "00" },
    });
    const of = (...ids: readonly string[]) => ({ json: "[0,1]", files: ids.map(fileOf) });
    await submit(storage, newTask("a", { arguments: of("shared", "own") }));
    await submit(storage, newTask("b", { arguments: of("shared") }));
    await remove(storage, "a");
    const taken = { nowMs: NOW_MS + 5, againMs: NOW_MS + 9_000, limit: 10 };
    expect(await storage.takeDeadBlobs(taken)).toEqual(["own"]);
  });

  it("remembers the id and the time until the task would have expired", async (storage) => {
    await endAttempt(storage, await startTask(storage, "ended"), success(1));
    await submit(storage, newTask("queued"));
    await remove(storage, "ended", "queued");
    const deleted = () =>
      Promise.all(["ended", "queued"].map((id) => storage.findDeleted(key(id))));
    expect(await deleted()).toEqual([NOW_MS + 5, NOW_MS + 5]);
    const prune = (nowMs: number) => storage.pruneFinished({ nowMs, limit: 100 });
    expect(await prune(NOW_MS + RETENTION_MS)).toBe(1);
    expect(await deleted()).toEqual([undefined, NOW_MS + 5]);
    expect(await prune(NOW_MS + 5 + RETENTION_MS)).toBe(1);
    expect(await deleted()).toEqual([undefined, undefined]);
  });

  it("forgets as many as it may at once, what expired first, and says that there are more", async (storage) => {
    const taskIds = ["d", "c", "b", "a", "e"];
    await submit(storage, ...taskIds.map((taskId) => newTask(taskId)));
    for (const [at, taskId] of taskIds.entries()) {
      const asked = { deploymentId: DEPLOYMENT, taskIds: [taskId], nowMs: NOW_MS + at };
      await storage.deleteTasks(asked);
    }
    const expired = { nowMs: NOW_MS + RETENTION_MS + 10, limit: 2 };
    const left = async () => {
      const found = await Promise.all(taskIds.map((taskId) => storage.findDeleted(key(taskId))));
      return taskIds.filter((_, at) => found[at] !== undefined);
    };
    expect(await storage.pruneFinished(expired)).toBe(2);
    expect(await left()).toEqual(["b", "a", "e"]);
    expect(await storage.pruneFinished(expired)).toBe(2);
    expect(await storage.pruneFinished(expired)).toBe(1);
    expect(await left()).toEqual([]);
  });
}
