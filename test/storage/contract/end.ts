import { expect } from "vitest";
import type { AttemptEnd } from "../../../src/storage/storage.ts";
import { WORKER_LOST } from "../../../src/tasks/failure.ts";
import { MAX_LOST_WORKERS } from "../../../src/tasks/lost.ts";
import type { Contract } from "../contract.ts";
import {
  attempt,
  claim,
  counts,
  endAttempt,
  FAILURE,
  json,
  key,
  NOW_MS,
  newTask,
  RETENTION_MS,
  startTask,
  submit,
  success,
  taskIds,
} from "../fixtures.ts";

export function endContract({ it }: Contract): void {
  it("ends a task with its result", async (storage) => {
    const ended = await endAttempt(storage, await startTask(storage, "a"), success(42), NOW_MS + 9);
    expect(ended).toMatchObject({
      status: "success",
      startedAtMs: NOW_MS,
      finishedAtMs: NOW_MS + 9,
      failure: undefined,
      lastSequence: 3,
    });
    expect(await storage.getTask(key("a"))).toEqual(ended);
    expect(await storage.getResult(key("a"))).toEqual(json(42));
    expect(await storage.getArguments(key("a"))).toEqual(json({ taskId: "a" }));
    expect(await counts(storage)).toEqual([]);
  });

  it("does not consume a result by reading it", async (storage) => {
    await endAttempt(storage, await startTask(storage, "a"), success(42));
    await storage.getResult(key("a"));
    expect(await storage.getResult(key("a"))).toEqual(json(42));
  });

  it("ends a task with its failure, whole", async (storage) => {
    const end: AttemptEnd = { status: "failure", failure: FAILURE };
    const ended = await endAttempt(storage, await startTask(storage, "a"), end);
    expect(ended).toMatchObject({ status: "failure", failure: FAILURE, finishedAtMs: NOW_MS });
    expect(await storage.getTask(key("a"))).toEqual(ended);
    expect(await storage.getResult(key("a"))).toBeUndefined();
  });

  it("ends a task with its failure and what is to be read all the same", async (storage) => {
    const response = { status: 422, headers: [["x-own", "yes"]] as const };
    for (const [id, result] of [
      ["a", { json: "0", files: [], response }],
      ["b", json("short")],
    ] as const) {
      const end: AttemptEnd = { status: "failure", failure: FAILURE, result };
      const started = await startTask(storage, id);
      const ended = await endAttempt(storage, started, end);
      expect(ended).toMatchObject({ status: "failure", failure: FAILURE });
      expect(await storage.getResult(key(id))).toEqual(result);
      expect(await endAttempt(storage, started, end)).toEqual(ended);
    }
  });

  it("ends a task as cancelled", async (storage) => {
    const ended = await endAttempt(storage, await startTask(storage, "a"), { status: "cancelled" });
    expect(ended).toMatchObject({ status: "cancelled", failure: undefined });
    expect(await storage.getResult(key("a"))).toBeUndefined();
    expect(await counts(storage)).toEqual([]);
  });

  it("keeps a result for its retention from the end", async (storage) => {
    const running = await startTask(storage, "a");
    const ended = await endAttempt(storage, running, success(1), NOW_MS + 10_000);
    expect(ended?.expiresAtMs).toBe(NOW_MS + 10_000 + RETENTION_MS);
  });

  it("never shortens what was promised at submission", async (storage) => {
    const expiresAtMs = NOW_MS + 10 * RETENTION_MS;
    const ended = await endAttempt(
      storage,
      await startTask(storage, "a", { expiresAtMs }),
      success(1),
    );
    expect(ended?.expiresAtMs).toBe(expiresAtMs);
  });

  it("keeps a cancelled task for its retention from the end, also one that was delayed", async (storage) => {
    const expiresAtMs = NOW_MS + 10 * RETENTION_MS;
    await submit(storage, newTask("a"), newTask("b", { runAtMs: NOW_MS + 1_000, expiresAtMs }));
    for (const id of ["a", "b"]) {
      const outcome = await storage.cancelTask({ ...key(id), nowMs: NOW_MS + 10 });
      expect(outcome?.task.expiresAtMs).toBe(NOW_MS + 10 + RETENTION_MS);
    }
  });

  it("returns an attempt to the queue at once", async (storage) => {
    const running = await startTask(storage, "a");
    const end: AttemptEnd = {
      status: "queued",
      runAtMs: NOW_MS + 5,
      failed: true,
      failure: FAILURE,
    };
    const queued = await endAttempt(storage, running, end, NOW_MS + 5);
    expect(queued).toMatchObject({ status: "queued", attempt: 1, finishedAtMs: undefined });
    expect(await counts(storage)).toEqual([{ endpoint: "work", queued: 1, running: 0 }]);
    const [again] = await claim(storage, { nowMs: NOW_MS + 5 });
    expect(again).toMatchObject({
      arguments: json({ taskId: "a" }),
      task: { status: "running", attempt: 2, startedAtMs: NOW_MS + 5 },
    });
  });

  it("returns an attempt to the queue for later", async (storage) => {
    const running = await startTask(storage, "a");
    await endAttempt(storage, running, {
      status: "queued",
      runAtMs: NOW_MS + 1_000,
      failed: true,
      failure: FAILURE,
    });
    expect(await claim(storage, { nowMs: NOW_MS + 999 })).toEqual([]);
    expect(taskIds(await claim(storage, { nowMs: NOW_MS + 1_000 }))).toEqual(["a"]);
  });

  it("returns a lost attempt to the place that it had", async (storage) => {
    await startTask(storage, "a");
    await submit(storage, newTask("b", { createdAtMs: NOW_MS + 1, runAtMs: NOW_MS + 1 }));
    const lost: AttemptEnd[] = [
      { status: "worker_lost", failure: WORKER_LOST },
      { status: "queued", failed: false, failure: FAILURE },
    ];
    for (const [index, end] of lost.entries()) {
      const returned = attempt("a", { attempt: index + 1 });
      const task = await endAttempt(storage, returned, end, NOW_MS + 5_000);
      expect(task).toMatchObject({ status: "queued", runAtMs: NOW_MS });
      expect(await storage.queuePosition({ ...key("b"), nowMs: NOW_MS + 5_000, limit: 10 })).toBe(
        1,
      );
      const [again] = await claim(storage, { nowMs: NOW_MS + 5_000, limit: 1, suspects: true });
      expect(again?.task).toMatchObject({ taskId: "a", attempt: index + 2 });
    }
  });

  it("puts a failed attempt behind those that were due before its retry", async (storage) => {
    const running = await startTask(storage, "a");
    await submit(storage, newTask("b", { createdAtMs: NOW_MS + 1, runAtMs: NOW_MS + 1 }));
    const retry: AttemptEnd = {
      status: "queued",
      runAtMs: NOW_MS + 10,
      failed: true,
      failure: FAILURE,
    };
    expect(await endAttempt(storage, running, retry)).toMatchObject({ runAtMs: NOW_MS + 10 });
    expect(taskIds(await claim(storage, { nowMs: NOW_MS + 10 }))).toEqual(["b", "a"]);
    const lost = attempt("a", { attempt: 2 });
    const returned = await endAttempt(
      storage,
      lost,
      { status: "worker_lost", failure: WORKER_LOST },
      NOW_MS + 99,
    );
    expect(returned).toMatchObject({ status: "queued", runAtMs: NOW_MS + 10 });
  });

  it("returns a lost attempt so often, then fails the task", async (storage) => {
    await startTask(storage, "a");
    for (let lost = 1; lost <= MAX_LOST_WORKERS; lost++) {
      const task = await endAttempt(storage, attempt("a", { attempt: lost }), {
        status: "worker_lost",
        failure: WORKER_LOST,
      });
      expect(task).toMatchObject({ status: "queued", attempt: lost });
      expect(await claim(storage, { suspects: true })).toHaveLength(1);
    }
    const last = attempt("a", { attempt: MAX_LOST_WORKERS + 1 });
    expect(
      await endAttempt(storage, last, { status: "worker_lost", failure: WORKER_LOST }),
    ).toMatchObject({
      status: "failure",
      failure: { reason: "worker_lost" },
    });
    expect(await claim(storage, { suspects: true })).toEqual([]);
    expect(await counts(storage)).toEqual([]);
  });

  it("counts failed attempts, and no other returns to the queue among them", async (storage) => {
    const ends: AttemptEnd[] = [
      { status: "queued", runAtMs: NOW_MS, failed: true, failure: FAILURE },
      { status: "worker_lost", failure: WORKER_LOST },
      { status: "queued", failed: false, failure: FAILURE },
      { status: "queued", runAtMs: NOW_MS, failed: true, failure: FAILURE },
    ];
    await startTask(storage, "a");
    const failures: (number | undefined)[] = [];
    for (const [index, end] of ends.entries()) {
      const task = await endAttempt(storage, attempt("a", { attempt: index + 1 }), end);
      failures.push(task?.failedAttempts);
      await claim(storage, { suspects: index === 1 || index === 2 });
    }
    expect(failures).toEqual([1, 1, 1, 2]);
  });

  it("does not count other returns to the queue as lost workers", async (storage) => {
    await startTask(storage, "a");
    for (let number = 1; number <= MAX_LOST_WORKERS + 2; number++) {
      const returned: AttemptEnd = {
        status: "queued",
        runAtMs: NOW_MS,
        failed: true,
        failure: FAILURE,
      };
      await endAttempt(storage, attempt("a", { attempt: number }), returned);
      await claim(storage);
    }
    const last = attempt("a", { attempt: MAX_LOST_WORKERS + 3 });
    expect(
      await endAttempt(storage, last, { status: "worker_lost", failure: WORKER_LOST }),
    ).toMatchObject({
      status: "queued",
    });
  });

  it("answers ends in the order in which they were given", async (storage) => {
    for (const taskId of ["a", "b", "c"]) {
      await startTask(storage, taskId);
    }
    const tasks = await storage.endAttempts({
      nowMs: NOW_MS,
      ends: [
        { attempt: attempt("c"), end: success("c") },
        { attempt: attempt("none"), end: success("none") },
        {
          attempt: attempt("a"),
          end: { status: "queued", runAtMs: NOW_MS, failed: true, failure: FAILURE },
        },
        { attempt: attempt("b"), end: { status: "failure", failure: FAILURE } },
      ],
    });
    expect(tasks.map((task) => task && `${task.taskId} ${task.status}`)).toEqual([
      "c success",
      undefined,
      "a queued",
      "b failure",
    ]);
  });

  it("ends an attempt once when one call names it twice", async (storage) => {
    const running = await startTask(storage, "a");
    const ends = [
      { attempt: running, end: success("first") },
      { attempt: running, end: success("second") },
    ];
    const [first, second] = await storage.endAttempts({ nowMs: NOW_MS, ends });
    expect(first?.status).toBe("success");
    expect(second).toBeUndefined();
    expect(await storage.getResult(key("a"))).toEqual(json("first"));
  });

  it("answers a repeated end as the first time, and changes nothing", async (storage) => {
    const ends: AttemptEnd[] = [
      success(1),
      success("large".repeat(1_000)),
      { status: "failure", failure: FAILURE },
      { status: "cancelled" },
    ];
    for (const [index, end] of ends.entries()) {
      const running = await startTask(storage, `t${index}`);
      const first = await endAttempt(storage, running, end);
      expect(first).toBeDefined();
      expect(await endAttempt(storage, running, end)).toEqual(first);
      expect(await storage.getTask(key(`t${index}`))).toEqual(first);
      const other = { ...running, leaseId: "lease-2" };
      expect(await endAttempt(storage, other, end)).toBeUndefined();
      expect(await endAttempt(storage, running, end, NOW_MS + 1)).toBeUndefined();
    }
    expect(await counts(storage)).toEqual([]);
  });
}
