import { expect } from "vitest";
import type { Attempt, AttemptEnd, Storage } from "../../../src/storage/storage.ts";
import { WORKER_LOST } from "../../../src/tasks/failure.ts";
import type { Contract } from "../contract.ts";
import {
  attempt,
  claim,
  endAttempt,
  FAILURE,
  json,
  key,
  LEASE,
  NOW_MS,
  newTask,
  openLease,
  startTask,
  submit,
  success,
} from "../fixtures.ts";

const ENDS: readonly AttemptEnd[] = [
  success("stale"),
  { status: "failure", failure: FAILURE },
  { status: "cancelled" },
  { status: "queued", runAtMs: NOW_MS, failed: true, failure: FAILURE },
  { status: "worker_lost", failure: WORKER_LOST },
];

/** No end, no event and no piece of this attempt is taken, and nothing about its task changes. */
async function expectRefused(storage: Storage, stale: Attempt): Promise<void> {
  const everything = async () => ({
    task: await storage.getTask(stale),
    result: await storage.getResult(stale),
    history: await storage.getHistory({ ...stale, afterSequence: 0, limit: 100 }),
  });
  const before = await everything();
  for (const end of ENDS) {
    expect(await endAttempt(storage, stale, end, NOW_MS + 1)).toBeUndefined();
  }
  const body = { kind: "progress", fraction: 1, message: "stale" } as const;
  const recorded = await storage.recordEvents({
    events: [{ attempt: stale, timeMs: NOW_MS + 1, body }],
  });
  expect(recorded).toEqual([undefined]);
  const append = { attempt: stale, form: "text", first: 1, pieces: ["stale"] } as const;
  expect(await storage.appendPieces({ appends: [append] })).toEqual([false]);
  expect(await everything()).toEqual(before);
}

export function fencingContract({ it }: Contract): void {
  it("refuses an attempt under another lease", async (storage) => {
    await startTask(storage, "a");
    await openLease(storage, "lease-2");
    await expectRefused(storage, attempt("a", { leaseId: "lease-2" }));
  });

  it("refuses an attempt with another number", async (storage) => {
    await startTask(storage, "a");
    await expectRefused(storage, attempt("a", { attempt: 0 }));
    await expectRefused(storage, attempt("a", { attempt: 2 }));
  });

  it("refuses an attempt of another deployment", async (storage) => {
    await startTask(storage, "a");
    await submit(storage, newTask("a", { deploymentId: "deployment-2" }));
    await expectRefused(storage, attempt("a", { deploymentId: "deployment-2" }));
    await expectRefused(storage, attempt("a", { deploymentId: "deployment-3" }));
    expect(await storage.getTask(key("a"))).toMatchObject({ status: "running" });
  });

  it("refuses an attempt of a task that is queued", async (storage) => {
    await openLease(storage);
    await submit(storage, newTask("a"));
    await expectRefused(storage, attempt("a", { attempt: 0 }));
  });

  it("refuses an attempt whose task has ended", async (storage) => {
    for (const [index, end] of ENDS.slice(0, 3).entries()) {
      const running = await startTask(storage, `t${index}`);
      await endAttempt(storage, running, end);
      await expectRefused(storage, running);
    }
  });

  it("refuses an attempt that went back to the queue and was claimed again", async (storage) => {
    const first = await startTask(storage, "a");
    await endAttempt(storage, first, {
      status: "queued",
      runAtMs: NOW_MS,
      failed: true,
      failure: FAILURE,
    });
    await expectRefused(storage, first);
    await claim(storage);
    await expectRefused(storage, first);
    expect(await endAttempt(storage, { ...first, attempt: 2 }, success("second"))).toMatchObject({
      status: "success",
      attempt: 2,
    });
    expect(await storage.getResult(key("a"))).toEqual(json("second"));
  });

  it("refuses an attempt whose lease was closed and opened again", async (storage) => {
    const first = await startTask(storage, "a");
    await storage.closeLease({ leaseId: LEASE, nowMs: NOW_MS });
    await openLease(storage);
    await expectRefused(storage, first);
  });

  it("never changes a task that has ended", async (storage) => {
    const running = await startTask(storage, "a");
    const ended = await endAttempt(storage, running, success(1));
    const again = newTask("a", { arguments: json("other"), repeated: true });
    await storage.submitTasks({ tasks: [again] });
    await storage.cancelTask({ ...key("a"), nowMs: NOW_MS + 1 });
    await storage.closeLease({ leaseId: LEASE, nowMs: NOW_MS + 1 });
    await storage.rescueExpired({ nowMs: NOW_MS + 1, all: true });
    await openLease(storage);
    expect(await claim(storage)).toEqual([]);
    expect(await storage.getTask(key("a"))).toEqual(ended);
    expect(await storage.getArguments(key("a"))).toEqual(json({ taskId: "a" }));
  });
}
