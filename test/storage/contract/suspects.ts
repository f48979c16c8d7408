import { expect } from "vitest";
import type { AttemptEnd, Storage } from "../../../src/storage/storage.ts";
import { WORKER_LOST } from "../../../src/tasks/failure.ts";
import { MAX_LOST_NODES, MAX_LOST_WORKERS } from "../../../src/tasks/lost.ts";
import type { Contract } from "../contract.ts";
import {
  attempt,
  claim,
  DEPLOYMENT,
  ENDPOINT,
  endAttempt,
  FAILURE,
  key,
  NOW_MS,
  newTask,
  openLease,
  startTask,
  submit,
  success,
  taskIds,
} from "../fixtures.ts";

/** Ends an attempt beside others in a worker that died. */
const BESIDE: AttemptEnd = { status: "queued", failed: false, failure: FAILURE, suspect: true };
const ALONE: AttemptEnd = { status: "worker_lost", failure: WORKER_LOST };

async function suspectsOf(storage: Storage, nowMs = NOW_MS) {
  return (await storage.survey({ nowMs, deploymentIds: [DEPLOYMENT] })).suspects;
}

/** Ends attempt after attempt of a task, of which each is claimed as a suspect. */
async function endAll(storage: Storage, ends: readonly AttemptEnd[]) {
  for (const [index, end] of ends.entries()) {
    await endAttempt(storage, attempt("a", { attempt: index + 1 }), end);
    await claim(storage, { suspects: true, limit: 1 });
  }
  return storage.getTask(key("a"));
}

export function suspectsContract({ it }: Contract): void {
  it("claims suspects apart from others, in their old order", async (storage) => {
    for (const taskId of ["a", "b"]) {
      await startTask(storage, taskId);
    }
    await submit(storage, newTask("c"));
    expect(await suspectsOf(storage)).toEqual([]);
    for (const taskId of ["b", "a"]) {
      await endAttempt(storage, attempt(taskId), BESIDE);
    }
    expect(await suspectsOf(storage)).toEqual([
      { deploymentId: DEPLOYMENT, endpoint: ENDPOINT, count: 2 },
    ]);
    expect(taskIds(await claim(storage))).toEqual(["c"]);
    const claimed = await claim(storage, { suspects: true, limit: 1 });
    expect(claimed).toMatchObject([{ task: { taskId: "a", attempt: 2, failedAttempts: 0 } }]);
    expect(taskIds(await claim(storage, { suspects: true }))).toEqual(["b"]);
    expect(await suspectsOf(storage)).toEqual([]);
  });

  it("keeps a suspect one over the end of its node, a return and a pause", async (storage) => {
    await startTask(storage, "a");
    await endAttempt(storage, attempt("a"), BESIDE);
    await claim(storage, { suspects: true });
    await storage.rescueExpired({ nowMs: NOW_MS, all: true });
    await openLease(storage);
    expect(await claim(storage)).toEqual([]);
    expect(await claim(storage, { suspects: true })).toHaveLength(1);
    const later = {
      status: "queued",
      failed: false,
      failure: FAILURE,
      runAtMs: NOW_MS + 9,
    } as const;
    await endAttempt(storage, attempt("a", { attempt: 3 }), later);
    expect(await claim(storage, { nowMs: NOW_MS + 9 })).toEqual([]);
    expect(await suspectsOf(storage, NOW_MS + 9)).toHaveLength(1);
    expect(await claim(storage, { nowMs: NOW_MS + 9, suspects: true })).toHaveLength(1);
  });

  it("clears a suspect that failed by itself, and did not end its worker", async (storage) => {
    await startTask(storage, "a");
    await endAttempt(storage, attempt("a"), BESIDE);
    await claim(storage, { suspects: true });
    const failed = { status: "queued", failed: true, failure: FAILURE, runAtMs: NOW_MS } as const;
    await endAttempt(storage, attempt("a", { attempt: 2 }), failed);
    expect(await claim(storage, { suspects: true })).toEqual([]);
    expect(await claim(storage)).toHaveLength(1);
    // One that ended its worker by its timeout does not.
    await endAttempt(storage, attempt("a", { attempt: 3 }), { ...failed, suspect: true });
    expect(await claim(storage)).toEqual([]);
    expect(await claim(storage, { suspects: true })).toHaveLength(1);
    const task = await endAttempt(storage, attempt("a", { attempt: 4 }), success(1));
    expect(task).toMatchObject({ status: "success" });
    expect(await suspectsOf(storage)).toEqual([]);
  });

  it("counts no death beside others, however many", async (storage) => {
    await startTask(storage, "a");
    const task = await endAll(storage, Array(2 * MAX_LOST_WORKERS + 2).fill(BESIDE));
    expect(task).toMatchObject({ status: "running", failedAttempts: 0 });
  });

  it("fails at the fourth death one that ended its worker alone after it was a suspect", async (storage) => {
    await startTask(storage, "a");
    const running = await endAll(storage, [BESIDE, ...Array(MAX_LOST_WORKERS - 1).fill(ALONE)]);
    expect(running).toMatchObject({ status: "running" });
    const last = await endAttempt(storage, attempt("a", { attempt: MAX_LOST_WORKERS + 1 }), ALONE);
    expect(last).toMatchObject({
      status: "failure",
      attempt: 4,
      failure: { reason: "worker_lost", message: expect.stringContaining("4 times") },
    });
  });

  it("counts a worker that was cut off as a lost node", async (storage) => {
    await startTask(storage, "a");
    const cutOff: AttemptEnd = { status: "node_lost", failure: { ...FAILURE, violations: [] } };
    let nowMs = NOW_MS;
    for (let lost = 1; lost <= MAX_LOST_NODES; lost++) {
      const task = await endAttempt(storage, attempt("a", { attempt: lost }), cutOff, nowMs);
      expect(task).toMatchObject({ status: "queued", failedAttempts: 0 });
      nowMs += 60_000;
      expect(await claim(storage, { nowMs })).toHaveLength(1);
    }
    const last = attempt("a", { attempt: MAX_LOST_NODES + 1 });
    expect(await endAttempt(storage, last, cutOff, nowMs)).toMatchObject({
      status: "failure",
      failure: { reason: "node_lost" },
    });
  });
}
