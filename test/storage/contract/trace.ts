import { expect } from "vitest";
import { WORKER_LOST } from "../../../src/tasks/failure.ts";
import { MAX_LOST_WORKERS } from "../../../src/tasks/lost.ts";
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

const TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 vendor=a,other=b";

export function traceContract({ it }: Contract): void {
  it("keeps the trace of a task, and none for one without", async (storage) => {
    await openLease(storage);
    await submit(storage, newTask("a", { trace: TRACE }), newTask("b"));
    expect((await storage.getTask(key("a")))?.trace).toBe(TRACE);
    expect((await storage.getTask(key("b")))?.trace).toBeUndefined();
    const claimed = await claim(storage);
    expect(claimed.map(({ task }) => task.trace)).toEqual([TRACE, undefined]);
  });

  it("tells the trace of a task that is stored as running", async (storage) => {
    await openLease(storage);
    const task = newTask("a", { trace: TRACE, leaseId: LEASE });
    const [outcome] = await storage.submitTasks({ tasks: [task] });
    expect(outcome).toMatchObject({ task: { status: "running", trace: TRACE } });
  });

  it("keeps the trace over returns to the queue and after the end", async (storage) => {
    await openLease(storage);
    const first = await startTask(storage, "a", { trace: TRACE });
    const retry = { status: "queued", failed: true, runAtMs: NOW_MS, failure: FAILURE } as const;
    expect((await endAttempt(storage, first, retry))?.trace).toBe(TRACE);
    const [again] = await claim(storage);
    expect(again?.task).toMatchObject({ attempt: 2, trace: TRACE });
    const ended = await endAttempt(storage, attempt("a", { attempt: 2 }), success(1));
    expect(ended?.trace).toBe(TRACE);
    expect((await storage.getTask(key("a")))?.trace).toBe(TRACE);
    const listed = await storage.listTasks({ deploymentId: ended?.deploymentId ?? "", limit: 1 });
    expect(listed.tasks[0]?.trace).toBe(TRACE);
  });

  it("keeps the trace of a task that lost its workers too often", async (storage) => {
    let running = await startTask(storage, "a", { trace: TRACE });
    for (let lost = 0; lost < MAX_LOST_WORKERS; lost++) {
      await endAttempt(storage, running, { status: "worker_lost", failure: WORKER_LOST });
      const [again] = await claim(storage, { suspects: true });
      running = attempt("a", { attempt: again?.task.attempt ?? 0 });
    }
    const ended = await endAttempt(storage, running, {
      status: "worker_lost",
      failure: WORKER_LOST,
    });
    expect(ended).toMatchObject({ status: "failure", trace: TRACE });
  });

  it("keeps the trace of tasks that never ran", async (storage) => {
    await submit(storage, newTask("a", { trace: TRACE }));
    const cancelled = await storage.cancelTask({ ...key("a"), nowMs: NOW_MS });
    expect(cancelled?.task.trace).toBe(TRACE);
    await submit(storage, newTask("b", { trace: TRACE, startByMs: NOW_MS + 1 }));
    const [expired] = await storage.expireTasks({ nowMs: NOW_MS + 2, limit: 10 });
    expect(expired?.trace).toBe(TRACE);
    expect((await storage.getTask(key("b")))?.trace).toBe(TRACE);
  });

  it("keeps the trace of a repeated end", async (storage) => {
    const running = await startTask(storage, "a", { trace: TRACE });
    const end = { status: "failure", failure: FAILURE } as const;
    await endAttempt(storage, running, end);
    expect((await endAttempt(storage, running, end))?.trace).toBe(TRACE);
  });
}
