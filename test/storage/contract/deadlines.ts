import { expect } from "vitest";
import type { Storage } from "../../../src/storage/storage.ts";
import { eventLog } from "../../../src/tasks/event.ts";
import type { Contract } from "../contract.ts";
import {
  attempt,
  claim,
  counts,
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
  taskIds,
} from "../fixtures.ts";

const START_BY_MS = NOW_MS + 1_000;

function expire(storage: Storage, nowMs = START_BY_MS, limit = 100) {
  return storage.expireTasks({ nowMs, limit });
}

export function deadlinesContract({ it }: Contract): void {
  it("fails a task that was not started by its deadline, at it and not before", async (storage) => {
    await submit(storage, newTask("a", { startByMs: START_BY_MS }), newTask("b"));
    expect(await expire(storage, START_BY_MS - 1)).toEqual([]);
    const [failed, ...more] = await expire(storage);
    expect(more).toEqual([]);
    expect(failed).toMatchObject({
      taskId: "a",
      status: "failure",
      attempt: 0,
      startedAtMs: undefined,
      finishedAtMs: START_BY_MS,
      expiresAtMs: START_BY_MS + RETENTION_MS,
      failure: { reason: "expired", code: "deadline_exceeded" },
    });
    expect(await storage.getTask(key("a"))).toEqual(failed);
    expect(await expire(storage)).toEqual([]);
    expect(await counts(storage)).toEqual([{ endpoint: "work", queued: 1, running: 0 }]);
  });

  it("tells the end in the task's event log", async (storage) => {
    await submit(storage, newTask("a", { startByMs: START_BY_MS }));
    const [failed] = await expire(storage);
    const parameters = { ...key("a"), afterSequence: 0, limit: 10 };
    const history = await storage.getHistory(parameters);
    expect(history && eventLog(history, 0)).toMatchObject([
      { sequence: 1, body: { status: "queued" } },
      { sequence: 2, timeMs: START_BY_MS, body: { status: "failure", failure: failed?.failure } },
    ]);
  });

  it("gives a task to nobody at or after its deadline", async (storage) => {
    await openLease(storage);
    await submit(
      storage,
      newTask("late", { startByMs: START_BY_MS, priority: 5 }),
      newTask("patient", { startByMs: START_BY_MS + 1 }),
      newTask("free"),
    );
    const claimed = taskIds(await claim(storage, { nowMs: START_BY_MS }));
    expect(claimed.sort()).toEqual(["free", "patient"]);
  });

  it("fails delayed tasks too, of every deployment", async (storage) => {
    const second = "deployment-2";
    await submit(
      storage,
      newTask("delayed", { runAtMs: NOW_MS + 900, startByMs: START_BY_MS }),
      newTask("elsewhere", { deploymentId: second, startByMs: START_BY_MS }),
    );
    const failed = taskIds(await expire(storage));
    expect(failed.sort()).toEqual(["delayed", "elsewhere"]);
    expect(await counts(storage)).toEqual([]);
    expect(await counts(storage, second)).toEqual([]);
  });

  it("leaves alone what runs, has ended or was cancelled", async (storage) => {
    const deadline = { startByMs: START_BY_MS };
    await startTask(storage, "running", deadline);
    const ended = await startTask(storage, "ended", deadline);
    await endAttempt(storage, ended, { status: "cancelled" });
    await submit(storage, newTask("cancelled", deadline));
    await storage.cancelTask({ ...key("cancelled"), nowMs: NOW_MS });
    expect(await expire(storage)).toEqual([]);
    expect(await storage.getTask(key("running"))).toMatchObject({ status: "running" });
  });

  it("fails a task that came back to the queue and cannot begin again in time", async (storage) => {
    const running = await startTask(storage, "a", { startByMs: START_BY_MS });
    await endAttempt(storage, running, {
      status: "queued",
      runAtMs: NOW_MS + 5_000,
      failed: true,
      failure: FAILURE,
    });
    expect(await expire(storage)).toMatchObject([
      { taskId: "a", attempt: 1, failure: { reason: "expired" } },
    ]);
    expect(await claim(storage, { nowMs: NOW_MS + 5_000 })).toEqual([]);
    const late = await endAttempt(storage, attempt("a"), { status: "cancelled" });
    expect(late).toBeUndefined();
  });

  it("fails at most the limit, those with the earliest deadlines first", async (storage) => {
    const tasks = [3, 1, 2].map((n) => newTask(`t${n}`, { startByMs: START_BY_MS + n }));
    await submit(storage, ...tasks);
    const nowMs = START_BY_MS + 10;
    expect(taskIds(await expire(storage, nowMs, 2)).sort()).toEqual(["t1", "t2"]);
    expect(taskIds(await expire(storage, nowMs, 2))).toEqual(["t3"]);
    expect(await expire(storage, nowMs, 2)).toEqual([]);
  });

  it("keeps the deadline of a task that was stored twice with one call", async (storage) => {
    await openLease(storage);
    const task = newTask("a", { startByMs: START_BY_MS });
    await submit(storage, task, task);
    expect(taskIds(await expire(storage))).toEqual(["a"]);
    expect(await claim(storage, { leaseId: LEASE, nowMs: START_BY_MS })).toEqual([]);
  });
}
