import { expect } from "vitest";
import type { BlobReference, Payload, StoredFile } from "../../../src/protocol/messages.ts";
import type { Storage } from "../../../src/storage/storage.ts";
import type { Contract } from "../contract.ts";
import {
  attempt,
  claim,
  endAttempt,
  FAILURE,
  key,
  NOW_MS,
  newTask,
  openLease,
  RETENTION_MS,
  startTask,
  submit,
} from "../fixtures.ts";

const HOUR_MS = 3_600_000;
const LATER_MS = NOW_MS + RETENTION_MS;

function reference(blobId: string): BlobReference {
  return { blobId, size: 300_000, sha256: `digest of ${blobId}` };
}

function stored(blobId: string): StoredFile {
  return { contentType: "image/png", filename: `${blobId}.png`, blob: reference(blobId) };
}

function withFiles(...blobIds: readonly string[]): Payload {
  return { json: '{"image":0}', files: blobIds.map(stored) };
}

/** Registers blobs that would die in an hour. */
function register(storage: Storage, ...blobIds: readonly string[]): Promise<void> {
  return storage.registerBlobs({ blobIds, deleteAfterMs: NOW_MS + HOUR_MS });
}

/** Takes what is dead at this time. */
async function dead(storage: Storage, nowMs: number, limit = 100): Promise<string[]> {
  return (await storage.takeDeadBlobs({ nowMs, againMs: nowMs + 1_000, limit })).sort();
}

/** Ends and prunes the task that runs. */
async function endAndPrune(storage: Storage, taskId: string): Promise<void> {
  await endAttempt(storage, attempt(taskId), { status: "cancelled" });
  expect(await storage.pruneFinished({ nowMs: LATER_MS, limit: 10 })).toBe(1);
}

export function blobsContract({ it }: Contract): void {
  it("keeps references to blobs as they are, as arguments and as a result", async (storage) => {
    await register(storage, "a", "b", "c", "d");
    const inline = { contentType: "text/plain", data: new Uint8Array([1, 2]) };
    const given = { json: '{"x":[0,1,2]}', files: [stored("a"), inline, stored("b")] };
    await openLease(storage);
    await submit(storage, newTask("t", { arguments: given }));
    const [claimed] = await claim(storage);
    expect(claimed?.arguments.json).toBe(given.json);
    expect(claimed?.arguments.files[0]).toEqual(stored("a"));
    expect(claimed?.arguments.files[2]).toEqual(stored("b"));
    await endAttempt(storage, attempt("t"), { status: "success", result: withFiles("c") });
    expect(await storage.getResult(key("t"))).toEqual(withFiles("c"));
    expect((await storage.getArguments(key("t")))?.files[2]).toEqual(stored("b"));
  });

  it("keeps a result whose text is a blob", async (storage) => {
    await register(storage, "a");
    const text = { contentType: "application/json", blob: reference("a") };
    const running = await startTask(storage, "t");
    const result = { json: "", files: [], text };
    await endAttempt(storage, running, { status: "success", result });
    expect(await storage.getResult(key("t"))).toEqual(result);
    expect(await dead(storage, NOW_MS + HOUR_MS)).toEqual([]);
  });

  it("lets a blob that no task has die at its time, and not before", async (storage) => {
    await register(storage, "a");
    expect(await dead(storage, NOW_MS + HOUR_MS - 1)).toEqual([]);
    expect(await dead(storage, NOW_MS + HOUR_MS)).toEqual(["a"]);
  });

  it("lets a blob that is released die at once, unless a task has it", async (storage) => {
    await register(storage, "a", "b");
    await submit(storage, newTask("t", { arguments: withFiles("b") }));
    await storage.releaseBlobs({ blobIds: ["a", "b", "never registered"], nowMs: NOW_MS });
    expect(await dead(storage, NOW_MS)).toEqual(["a"]);
    expect(await dead(storage, NOW_MS + 100 * HOUR_MS)).toEqual(["a"]);
  });

  it("lets the blobs of a task die when it is pruned, all of them", async (storage) => {
    await register(storage, "a", "b", "c");
    const running = await startTask(storage, "t", { arguments: withFiles("a", "b") });
    await endAttempt(storage, running, { status: "success", result: withFiles("c") });
    expect(await dead(storage, NOW_MS + HOUR_MS)).toEqual([]);
    await storage.pruneFinished({ nowMs: LATER_MS, limit: 10 });
    expect(await dead(storage, LATER_MS)).toEqual(["a", "b", "c"]);
  });

  it("keeps a blob while any of the tasks that have it is there", async (storage) => {
    await register(storage, "a");
    await startTask(storage, "t", { arguments: withFiles("a") });
    await startTask(storage, "u", { arguments: withFiles("a"), retryOf: "t" });
    await endAndPrune(storage, "t");
    expect(await dead(storage, NOW_MS + HOUR_MS)).toEqual([]);
    await endAndPrune(storage, "u");
    expect(await dead(storage, LATER_MS)).toEqual(["a"]);
  });

  it("does not attach the result of an attempt that is no longer the current one", async (storage) => {
    await register(storage, "a", "b");
    const stale = await startTask(storage, "t");
    await endAttempt(storage, stale, {
      status: "queued",
      runAtMs: NOW_MS,
      failed: false,
      failure: FAILURE,
    });
    expect(
      await endAttempt(storage, stale, { status: "success", result: withFiles("a") }),
    ).toBeUndefined();
    await claim(storage);
    const current = attempt("t", { attempt: 2 });
    await endAttempt(storage, current, { status: "success", result: withFiles("b") });
    expect(await dead(storage, NOW_MS + HOUR_MS)).toEqual(["a"]);
  });

  it("attaches once what is submitted or ended twice, after an answer that got lost", async (storage) => {
    await register(storage, "a", "b");
    await openLease(storage);
    const task = newTask("t", { arguments: withFiles("a") });
    const again = { ...task, repeated: true };
    await submit(storage, task);
    await submit(storage, again);
    await claim(storage);
    const end = { status: "success", result: withFiles("b") } as const;
    expect(await endAttempt(storage, attempt("t"), end)).toMatchObject({ status: "success" });
    expect(await endAttempt(storage, attempt("t"), end)).toMatchObject({ status: "success" });
    await submit(storage, again);
    await storage.pruneFinished({ nowMs: LATER_MS, limit: 10 });
    expect(await dead(storage, LATER_MS)).toEqual(["a", "b"]);
  });

  it("stores no task whose blobs are being deleted or were never registered, and the others", async (storage) => {
    await register(storage, "a", "b");
    await storage.releaseBlobs({ blobIds: ["a"], nowMs: NOW_MS });
    expect(await dead(storage, NOW_MS)).toEqual(["a"]);
    const outcomes = await storage.submitTasks({
      tasks: [
        newTask("t", { arguments: withFiles("a") }),
        newTask("u", { arguments: withFiles("b") }),
        newTask("v", { arguments: withFiles("never registered") }),
        newTask("w"),
      ],
    });
    expect(outcomes.map(({ outcome }) => outcome)).toEqual([
      "blobs_gone",
      "stored",
      "blobs_gone",
      "stored",
    ]);
    expect(await storage.getTask(key("t"))).toBeUndefined();
    expect(await storage.getArguments(key("u"))).toEqual(withFiles("b"));
  });

  it("returns an attempt to the queue whose result has a blob that is being deleted", async (storage) => {
    await register(storage, "a");
    await storage.releaseBlobs({ blobIds: ["a"], nowMs: NOW_MS });
    const running = await startTask(storage, "t");
    await dead(storage, NOW_MS);
    const end = { status: "success", result: withFiles("a") } as const;
    expect(await endAttempt(storage, running, end)).toMatchObject({ status: "queued" });
    expect(await storage.getResult(key("t"))).toBeUndefined();
    expect(await claim(storage)).toMatchObject([{ task: { taskId: "t", attempt: 2 } }]);
  });

  it("gives a dead blob to one who asks, and to the next when it is not forgotten in time", async (storage) => {
    await register(storage, "a", "b", "c");
    const first = await dead(storage, NOW_MS + HOUR_MS, 2);
    expect(first).toHaveLength(2);
    const second = await dead(storage, NOW_MS + HOUR_MS);
    expect([...first, ...second].sort()).toEqual(["a", "b", "c"]);
    await storage.forgetBlobs({ blobIds: first });
    expect(await dead(storage, NOW_MS + HOUR_MS + 999)).toEqual([]);
    expect(await dead(storage, NOW_MS + HOUR_MS + 1_000)).toEqual(second);
  });

  it("forgets no blob that is not dead", async (storage) => {
    await register(storage, "a");
    await storage.forgetBlobs({ blobIds: ["a"] });
    await submit(storage, newTask("t", { arguments: withFiles("a") }));
    expect(await storage.getArguments(key("t"))).toEqual(withFiles("a"));
  });
}
