import { expect, it } from "vitest";
import type { ExecutionEnd, ExecutionListener } from "../../src/pool/calls/execution.ts";
import type { Slot } from "../../src/pool/pool.ts";
import type { ByKeyManifest, EndpointManifest } from "../../src/protocol/manifest.ts";
import { type SubmissionOptions, TakenByOthers } from "../../src/queue/submission.ts";
import { createIdSource } from "../../src/tasks/id.ts";
import { localFiles } from "../storage/files/local.ts";
import { claim, ENDPOINT, key, LEASE, newTask, openLease, submit } from "../storage/fixtures.ts";
import { openSqlite } from "../storage/sqlite/databases.ts";
import { queueOn } from "./queues.ts";

const MESSAGE = "it broke";
const FAILED: ExecutionEnd = {
  kind: "failure",
  failure: { code: "internal", reason: "CALL_FAILED", message: MESSAGE },
};

/** A claimed task that runs; `end` ends its attempt, and resolves when that is stored. */
async function running(retries = 1, byKey?: ByKeyManifest) {
  const storage = await openSqlite(":memory:");
  const queue = queueOn(storage, { keeper: localFiles().task });
  const taskId = createIdSource()();
  await openLease(storage);
  await submit(storage, newTask(taskId, byKey && { key: "ada" }));
  const endpoint = {
    name: ENDPOINT,
    kind: "task",
    timeoutMs: 1_000,
    retries: { max: retries, backoffMs: 60_000 },
    ...(byKey && { byKey }),
  } as EndpointManifest;
  const listeners: ExecutionListener[] = [];
  const slot = {
    execute: (_: unknown, listener: ExecutionListener) => {
      listeners.push(listener);
      return { abort: () => listener.onEnd({ kind: "aborted", reason: "cancelled" }) };
    },
    release() {},
  };
  const [claimed] = await claim(storage, byKey && { byKey });
  if (claimed === undefined) {
    throw new Error("the task was not claimed");
  }
  queue.begin(claimed, endpoint, slot as unknown as Slot);
  const end = async (how: ExecutionEnd) => {
    await listeners[0]?.onEnd(how);
    return storage.getTask(key(taskId));
  };
  const dispose = () => storage[Symbol.asyncDispose]();
  return { queue, storage, taskId, end, [Symbol.asyncDispose]: dispose };
}

it("ends a task with what its function returned", async () => {
  await using it = await running();
  const task = await it.end({ kind: "result", result: { json: "7", files: [] } });
  expect(task).toMatchObject({ status: "success", attempt: 1 });
  const { result } = await it.queue.tasks.result({ taskId: it.taskId });
  expect(result?.json).toBe("7");
});

it("answers who waits for a task from memory while its end is being recorded", async () => {
  await using it = await running();
  let reads = 0;
  const { storage } = it;
  const [getTask, endAttempts] = [storage.getTask.bind(storage), storage.endAttempts.bind(storage)];
  const held = Promise.withResolvers<void>();
  storage.endAttempts = async (ends) => {
    await held.promise;
    return endAttempts(ends);
  };
  storage.getTask = (asked) => {
    reads += 1;
    return getTask(asked);
  };
  const ended = it.end({ kind: "result", result: { json: "7", files: [] } });
  const waiting = it.queue.tasks.result({ taskId: it.taskId, waitMs: 10_000 });
  held.resolve();
  expect((await waiting).result?.json).toBe("7");
  expect(reads).toBe(0);
  await ended;
});

it("tries a failed task again after its backoff, and fails it when it has no tries left", async () => {
  await using first = await running(1);
  const beganMs = Date.now();
  const again = await first.end(FAILED);
  expect(again).toMatchObject({ status: "queued", failedAttempts: 1 });
  expect(again?.runAtMs).toBeGreaterThanOrEqual(beganMs + 60_000);
  await using last = await running(0);
  expect(await last.end(FAILED)).toMatchObject({
    status: "failure",
    failure: { reason: "error", code: "internal", message: MESSAGE },
  });
});

it("counts a timeout as a failure", async () => {
  await using it = await running(0);
  expect(await it.end({ kind: "aborted", reason: "timeout" })).toMatchObject({
    status: "failure",
    failure: { reason: "timeout", code: "deadline_exceeded" },
  });
});

it.each<[string, ExecutionEnd]>([
  ["was alone", { kind: "lost", alone: true, outOfMemory: false, message: "it exited" }],
  ["ran other calls", { kind: "lost", alone: false, outOfMemory: false, message: "it exited" }],
  ["was cut off", { kind: "cut_off", message: "its network" }],
  ["was killed for another", { kind: "displaced", message: "another call blocked" }],
  ["was stopped", { kind: "aborted", reason: "shutdown" }],
])("returns a task to the queue whose worker %s, and counts no failure", async (_, end) => {
  await using it = await running(0);
  expect(await it.end(end)).toMatchObject({ status: "queued", failedAttempts: 0 });
});

it.each([
  ["nothing that was displaced before it began", { unbegun: true }, 1],
  ["what began in a worker that was ended for another", {}, 0],
] as const)("counts for the rate of a key %s", async (_, facts, again) => {
  const byKey = { rate: { count: 1, periodMs: 3_600_000 } };
  await using it = await running(1, byKey);
  const task = await it.end({ kind: "displaced", message: "another call blocked", ...facts });
  expect(task).toMatchObject({ status: "queued", attempt: 1 });
  expect(await claim(it.storage, { byKey })).toHaveLength(again);
});

it("cancels a running task only when it may abort it, and a finished one never", async () => {
  await using it = await running();
  const { queue, taskId } = it;
  await expect(queue.cancel({ taskId }, false)).rejects.toThrow("is already running");
  expect(await queue.cancel({ taskId }, true)).toMatchObject({ status: "cancelled" });
  await expect(queue.cancel({ taskId }, true)).rejects.toThrow("has already ended (cancelled)");
});

it("says of a task of another cell that this platform does not have it, and of others that they are not there", async () => {
  await using it = await running();
  const found = (taskId: string) => it.queue.tasks.find({ taskId });
  const away = found("017f22e2-79b0-807c-98c4-dc0c0c07398f");
  await expect(away).rejects.toMatchObject({ reason: "TASK_NOT_FOUND" });
  await expect(away).rejects.toThrow("is of cell 7, which this platform does not have");
  for (const gone of ["017f22e2-79b0-7cc3-98c4-dc0c0c07398f", createIdSource()()]) {
    await expect(found(gone)).rejects.toThrow("does not exist or has expired");
  }
});

it("releases the slot of a task that was not to be stored, and doubts no claim", async () => {
  await using storage = await openSqlite(":memory:");
  let released = 0;
  const slot = { workerId: LEASE, release: () => released++ } as unknown as Slot;
  const queue = queueOn(storage, { keeper: localFiles().task, slot });
  let looked = 0;
  storage.listAttempts = () => {
    looked += 1;
    return Promise.resolve([]);
  };
  const endpoint = { name: ENDPOINT, kind: "task", priority: 0, queueLimit: 1, retentionMs: 1 };
  const submitWith = (store: SubmissionOptions["store"]) =>
    queue.submit(endpoint as EndpointManifest, { json: "1", files: [] }, { store });
  const taken = submitWith(() => Promise.resolve({ outcome: "taken" }));
  await expect(taken).rejects.toThrow(TakenByOthers);
  expect([released, looked]).toEqual([1, 0]);
  // A call that failed may have claimed the task.
  const failed = submitWith(() => Promise.reject(new Error("no connection")));
  await expect(failed).rejects.toThrow("no connection");
  expect([released, looked]).toEqual([2, 1]);
  await queue.stop();
});
