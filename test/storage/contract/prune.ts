import { expect } from "vitest";
import type { NewTask, Storage } from "../../../src/storage/storage.ts";
import type { Contract } from "../contract.ts";
import {
  attempt,
  claim,
  DEPLOYMENT,
  endAttempt,
  FAILURE,
  key,
  LEASE,
  NOW_MS,
  newTask,
  openLease,
  RETENTION_MS,
  startTask,
  submit,
  success,
} from "../fixtures.ts";

const EXPIRED_MS = NOW_MS + RETENTION_MS;
const IDEMPOTENT: Partial<NewTask> = { idempotency: { key: "order-7", digest: "d1" } };

const LARGE = { json: JSON.stringify("x".repeat(5_000)), files: [] };
const LINE = { kind: "log", level: "info", message: "x" } as const;

/** Ends tasks of which each has one thing beside its row, which its id names. */
async function endWithOneThing(storage: Storage): Promise<string[]> {
  await endAttempt(
    storage,
    await startTask(storage, "arguments", { arguments: LARGE }),
    success(1),
  );
  const result = await startTask(storage, "result");
  await endAttempt(storage, result, { status: "success", result: LARGE });
  const failed = await startTask(storage, "failed-result");
  await endAttempt(storage, failed, { status: "failure", failure: FAILURE, result: LARGE });
  const lined = await startTask(storage, "line");
  await storage.recordEvents({ events: [{ attempt: lined, timeMs: NOW_MS, body: LINE }] });
  await endAttempt(storage, lined, success(1));
  const returned = await startTask(storage, "return");
  await endAttempt(storage, returned, { status: "queued", failed: false, failure: FAILURE });
  await storage.cancelTask({ ...key("return"), nowMs: NOW_MS });
  const streamed = await startTask(storage, "pieces");
  const pieces = { attempt: streamed, form: "text", first: 1, pieces: ["x"] } as const;
  await storage.appendPieces({ appends: [pieces] });
  await endAttempt(storage, streamed, success(1));
  await endAttempt(storage, await startTask(storage, "key", IDEMPOTENT), success(1));
  return ["arguments", "result", "failed-result", "line", "return", "pieces", "key"];
}

/** Submits tasks under ids that had others, and expects that nothing is left of those. */
async function expectNothingLeft(storage: Storage, taskIds: readonly string[]): Promise<void> {
  for (const taskId of taskIds) {
    const again = newTask(taskId, { ...(taskId === "key" && IDEMPOTENT), arguments: LARGE });
    const [outcome] = await storage.submitTasks({ tasks: [again] });
    expect(outcome).toMatchObject({ outcome: "stored", task: { status: "queued" } });
    expect(await storage.getArguments(key(taskId))).toMatchObject(LARGE);
    expect(await claim(storage)).toHaveLength(1);
    await endAttempt(storage, attempt(taskId), { status: "success", result: LARGE });
    expect(await storage.getResult(key(taskId))).toMatchObject(LARGE);
    const question = { ...key(taskId), afterSequence: 0, limit: 10 };
    expect(await storage.getHistory(question)).toMatchObject({ stored: [], lastPiece: 0 });
  }
}

function prune(storage: Storage, nowMs = EXPIRED_MS, limit = 100): Promise<number> {
  return storage.pruneFinished({ nowMs, limit });
}

export function pruneContract({ it }: Contract): void {
  it("deletes a finished task when it has expired and not before", async (storage) => {
    await endAttempt(storage, await startTask(storage, "a"), success(1));
    expect(await prune(storage, EXPIRED_MS - 1)).toBe(0);
    expect(await storage.getTask(key("a"))).toBeDefined();
    expect(await prune(storage)).toBe(1);
    expect(await storage.getTask(key("a"))).toBeUndefined();
    expect(await prune(storage)).toBe(0);
  });

  it("deletes all that belongs to the task", async (storage) => {
    const large = { json: "[0]", files: [{ contentType: "text/plain", data: new Uint8Array(9) }] };
    const running = await startTask(storage, "a", { ...IDEMPOTENT, arguments: large });
    const body = { kind: "log", level: "info", message: "x" } as const;
    await storage.recordEvents({ events: [{ attempt: running, timeMs: NOW_MS, body }] });
    const pieces = { attempt: running, form: "text", first: 1, pieces: ["x"] } as const;
    await storage.appendPieces({ appends: [pieces] });
    await endAttempt(storage, running, { status: "success", result: large });
    await prune(storage);
    expect(await storage.getArguments(key("a"))).toBeUndefined();
    expect(await storage.getResult(key("a"))).toBeUndefined();
    const question = { ...key("a"), afterSequence: 0, limit: 10 };
    expect(await storage.getHistory(question)).toBeUndefined();
    const [again] = await storage.submitTasks({ tasks: [newTask("a", IDEMPOTENT)] });
    expect(again).toMatchObject({ outcome: "stored", task: { status: "queued" } });
    expect(await storage.getResult(key("a"))).toBeUndefined();
    expect(await storage.getHistory(question)).toMatchObject({ stored: [], lastPiece: 0 });
  });

  it("leaves nothing of tasks that have one thing beside their rows", async (storage) => {
    const taskIds = await endWithOneThing(storage);
    expect(await prune(storage)).toBe(taskIds.length);
    await expectNothingLeft(storage, taskIds);
  });

  it("leaves nothing of them when they are deleted before their time", async (storage) => {
    const taskIds = await endWithOneThing(storage);
    const waiting = await startTask(storage, "waiting");
    await endAttempt(storage, waiting, { status: "queued", failed: false, failure: FAILURE });
    const asked = { deploymentId: DEPLOYMENT, taskIds: [...taskIds, "waiting"], nowMs: NOW_MS };
    expect(new Set(await storage.deleteTasks(asked))).toEqual(new Set(["deleted"]));
    await expectNothingLeft(storage, asked.taskIds);
  });

  it("deletes finished tasks of every kind", async (storage) => {
    await openLease(storage);
    await submit(storage, ...["a", "b", "c"].map((id) => newTask(id, { leaseId: LEASE })));
    await submit(storage, newTask("d"));
    await endAttempt(storage, attempt("a"), success(1));
    const failure = { reason: "error", code: "internal", message: "x" } as const;
    await endAttempt(storage, attempt("b"), { status: "failure", failure });
    await endAttempt(storage, attempt("c"), { status: "cancelled" });
    await storage.cancelTask({ ...key("d"), nowMs: NOW_MS });
    expect(await prune(storage)).toBe(4);
  });

  it("never deletes a task that is queued or running, however old", async (storage) => {
    await startTask(storage, "running");
    await submit(storage, newTask("queued"), newTask("delayed", { runAtMs: NOW_MS + 5 }));
    expect(await prune(storage, EXPIRED_MS * 2)).toBe(0);
    for (const taskId of ["running", "queued", "delayed"]) {
      expect(await storage.getTask(key(taskId))).toBeDefined();
    }
  });

  it("deletes at most the limit, what expired first", async (storage) => {
    await openLease(storage);
    for (const [index, taskId] of ["a", "b", "c", "d", "e"].entries()) {
      await submit(storage, newTask(taskId, { leaseId: LEASE }));
      await endAttempt(storage, attempt(taskId), success(1), NOW_MS + index);
    }
    expect(await prune(storage, EXPIRED_MS * 2, 2)).toBe(2);
    expect(await storage.getTask(key("b"))).toBeUndefined();
    expect(await storage.getTask(key("c"))).toBeDefined();
    expect(await prune(storage, EXPIRED_MS * 2, 2)).toBe(2);
    expect(await prune(storage, EXPIRED_MS * 2, 2)).toBe(1);
  });

  it("keeps a task that ended late for its retention from the end", async (storage) => {
    await endAttempt(storage, await startTask(storage, "a"), success(1), EXPIRED_MS - 1);
    expect(await prune(storage)).toBe(0);
    expect(await prune(storage, EXPIRED_MS - 1 + RETENTION_MS)).toBe(1);
  });

  it("deletes only what belongs to the expired task", async (storage) => {
    await openLease(storage);
    const second = "deployment-2";
    await submit(
      storage,
      newTask("a", { ...IDEMPOTENT, leaseId: LEASE }),
      newTask("a", { ...IDEMPOTENT, deploymentId: second }),
    );
    await endAttempt(storage, attempt("a"), success(1));
    await prune(storage);
    expect(await claim(storage, { deploymentId: second })).toHaveLength(1);
    const repeated = newTask("b", { ...IDEMPOTENT, deploymentId: second });
    expect(await storage.submitTasks({ tasks: [repeated] })).toMatchObject([
      { outcome: "replayed", task: { taskId: "a" } },
    ]);
  });
}
