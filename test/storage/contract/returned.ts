import { expect } from "vitest";
import type { Storage } from "../../../src/storage/storage.ts";
import { attemptsOf } from "../../../src/tasks/attempt.ts";
import { eventLog, type TaskEvent } from "../../../src/tasks/event.ts";
import { NODE_LOST, WORKER_LOST, workerLost } from "../../../src/tasks/failure.ts";
import type { Contract } from "../contract.ts";
import {
  attempt,
  claim,
  endAttempt,
  FAILURE,
  key,
  LEASE,
  NOW_MS,
  newTask,
  openLease,
  startTask,
  submit,
  success,
} from "../fixtures.ts";

async function log(storage: Storage): Promise<TaskEvent[]> {
  const history = await storage.getHistory({ ...key("a"), afterSequence: 0, limit: 1_000 });
  return history ? eventLog(history, 0) : [];
}

const BRIEF = { reason: "error", code: "invalid_argument", message: "the picture is empty" };

export function returnedContract({ it }: Contract): void {
  it("records nothing of a task that succeeds the first time", async (storage) => {
    const task = await endAttempt(storage, await startTask(storage, "a"), success(1), NOW_MS + 9);
    expect(task).toMatchObject({ worker: LEASE, returned: [] });
    expect(await storage.getTask(key("a"))).toEqual(task);
    expect(task && attemptsOf(task)).toEqual([
      { number: 1, worker: LEASE, startedAtMs: NOW_MS, endedAtMs: NOW_MS + 9 },
    ]);
  });

  it("keeps the peak memory of each attempt where it is known, also of the last", async (storage) => {
    const gibibytes = 200 * 1024 ** 3;
    const retry = { status: "queued", failed: true, runAtMs: NOW_MS, failure: FAILURE } as const;
    await endAttempt(storage, await startTask(storage, "a"), retry, NOW_MS, {
      ...{ gpuMs: 0, peakMemoryBytes: gibibytes },
    });
    await claim(storage);
    await endAttempt(storage, attempt("a", { attempt: 2 }), retry);
    const [claimed] = await claim(storage);
    const ended = { attempt: attempt("a", { attempt: 3 }), end: success(1) };
    const ends = [{ ...ended, task: claimed?.task, used: { gpuMs: 0, peakMemoryBytes: 1 } }];
    const [task] = await storage.endAttempts({ nowMs: NOW_MS, ends });
    const peaks = (each: typeof task) => each && attemptsOf(each).map((one) => one.peakMemoryBytes);
    expect(peaks(task)).toEqual([gibibytes, undefined, 1]);
    expect(peaks(await storage.getTask(key("a")))).toEqual([gibibytes, undefined, 1]);
  });

  it("keeps the peak memory of the attempt whose worker died for the last time", async (storage) => {
    await startTask(storage, "a");
    const end = { status: "worker_lost", failure: WORKER_LOST } as const;
    const peak = (peakMemoryBytes: number) => ({ gpuMs: 0, peakMemoryBytes });
    await endAttempt(storage, attempt("a"), end, NOW_MS, peak(1));
    for (let number = 2; (await claim(storage, { suspects: true })).length > 0; number += 1) {
      await endAttempt(storage, attempt("a", { attempt: number }), end, NOW_MS, peak(number));
    }
    const task = await storage.getTask(key("a"));
    expect(task?.status).toBe("failure");
    const peaks = task && attemptsOf(task).map(({ peakMemoryBytes }) => peakMemoryBytes);
    expect(peaks).toEqual(task && attemptsOf(task).map(({ number }) => number));
  });

  it("records why each attempt went back to the queue, and until when", async (storage) => {
    const first = await startTask(storage, "a");
    const retry = {
      status: "queued",
      failed: true,
      runAtMs: NOW_MS + 50,
      failure: FAILURE,
    } as const;
    await endAttempt(storage, first, retry, NOW_MS + 10);
    await claim(storage, { nowMs: NOW_MS + 50 });
    const died = workerLost({
      message: "out of memory: it used 600 MiB of 512 MiB",
      outOfMemory: true,
    });
    const second = attempt("a", { attempt: 2 });
    await endAttempt(storage, second, { status: "worker_lost", failure: died }, NOW_MS + 60);
    await claim(storage, { nowMs: NOW_MS + 60, suspects: true });
    await storage.closeLease({ leaseId: LEASE, nowMs: NOW_MS + 70 });
    await openLease(storage, "lease-2");
    await claim(storage, { nowMs: NOW_MS + 80, leaseId: "lease-2", suspects: true });
    const task = await storage.getTask(key("a"));
    expect(task && attemptsOf(task)).toEqual([
      {
        number: 1,
        worker: LEASE,
        startedAtMs: NOW_MS,
        endedAtMs: NOW_MS + 10,
        failure: BRIEF,
        retryAtMs: NOW_MS + 50,
      },
      {
        number: 2,
        worker: LEASE,
        startedAtMs: NOW_MS + 50,
        endedAtMs: NOW_MS + 60,
        failure: { ...died, reason: "out_of_memory" },
      },
      {
        number: 3,
        worker: LEASE,
        startedAtMs: NOW_MS + 60,
        endedAtMs: NOW_MS + 70,
        failure: NODE_LOST,
      },
      { number: 4, worker: "lease-2", startedAtMs: NOW_MS + 80 },
    ]);
  });

  it("keeps the record when the task ends, in whatever way", async (storage) => {
    const ends = [
      { status: "success", result: { json: "1", files: [] } },
      { status: "failure", failure: FAILURE },
      { status: "cancelled" },
    ] as const;
    for (const [at, end] of ends.entries()) {
      const taskId = `task-${at}`;
      await startTask(storage, taskId);
      const lost = { status: "worker_lost", failure: WORKER_LOST } as const;
      await endAttempt(storage, attempt(taskId), lost, NOW_MS + 1);
      await claim(storage, { nowMs: NOW_MS + 2, suspects: true });
      const ended = await endAttempt(storage, attempt(taskId, { attempt: 2 }), end, NOW_MS + 3);
      expect(ended?.returned).toMatchObject([{ number: 1, failure: WORKER_LOST }]);
      expect(await storage.getTask(key(taskId))).toEqual(ended);
    }
  });

  it("keeps the record of a task that never starts again", async (storage) => {
    await openLease(storage);
    const startByMs = NOW_MS + 20;
    await submit(
      storage,
      newTask("a", { leaseId: LEASE, startByMs }),
      newTask("b", { leaseId: LEASE }),
    );
    const back = {
      status: "queued",
      failed: true,
      runAtMs: NOW_MS + 99,
      failure: FAILURE,
    } as const;
    await endAttempt(storage, attempt("a"), back, NOW_MS + 1);
    await endAttempt(storage, attempt("b"), back, NOW_MS + 1);
    const [expired] = await storage.expireTasks({ nowMs: startByMs, limit: 1 });
    const cancelled = await storage.cancelTask({ ...key("b"), nowMs: startByMs });
    for (const task of [expired, cancelled?.task]) {
      expect(task).toMatchObject({ worker: undefined, returned: [{ number: 1, failure: BRIEF }] });
      expect(task && attemptsOf(task)).toHaveLength(1);
    }
  });

  it("keeps the first five and the last fifteen of many attempts", async (storage) => {
    await startTask(storage, "a");
    const message = `${"x".repeat(999)}\u{1f600}${"y".repeat(5_000)}\u0000`;
    const failure = { reason: "error", code: "internal", message } as const;
    for (let number = 1; number <= 40; number++) {
      const again = { status: "queued", failed: true, runAtMs: NOW_MS, failure } as const;
      await endAttempt(storage, attempt("a", { attempt: number }), again);
      await claim(storage);
    }
    const task = await storage.getTask(key("a"));
    expect(task?.returned.map(({ number }) => number)).toEqual([
      ...[1, 2, 3, 4, 5],
      ...Array.from({ length: 15 }, (_, at) => 26 + at),
    ]);
    expect(task?.returned[0]?.failure.message).toBe(`${"x".repeat(999)}\ufffd`);
    const events = await log(storage);
    expect(events[2]?.body).toEqual({ kind: "state", status: "queued", failure });
  });

  it("says in the event log why an attempt ended and when the next one starts", async (storage) => {
    const first = await startTask(storage, "a");
    const retry = {
      status: "queued",
      failed: true,
      runAtMs: NOW_MS + 50,
      failure: FAILURE,
    } as const;
    await endAttempt(storage, first, retry, NOW_MS + 10);
    expect((await log(storage)).at(-1)).toMatchObject({
      attempt: 1,
      timeMs: NOW_MS + 10,
      body: { kind: "state", status: "queued", failure: FAILURE, retryAtMs: NOW_MS + 50 },
    });
  });
}
