import { expect } from "vitest";
import type { Attempt, Storage } from "../../../src/storage/storage.ts";
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

const OTHER = "lease-2";

function sorted(attempts: readonly Attempt[]): Attempt[] {
  return attempts.toSorted((a, b) => (a.taskId < b.taskId ? -1 : 1));
}

async function underTwoLeases(storage: Storage): Promise<void> {
  await openLease(storage);
  await openLease(storage, OTHER);
  await submit(
    storage,
    newTask("a", { leaseId: LEASE }),
    newTask("b", { leaseId: OTHER, deploymentId: "deployment-2" }),
    newTask("c", { leaseId: LEASE }),
    newTask("waiting"),
  );
}

export function attemptsContract({ it }: Contract): void {
  it("lists the attempts that run under leases, of all deployments", async (storage) => {
    await underTwoLeases(storage);
    const list = async (...leaseIds: string[]) => sorted(await storage.listAttempts({ leaseIds }));
    const elsewhere = attempt("b", { deploymentId: "deployment-2", leaseId: OTHER });
    expect(await list(LEASE)).toEqual([attempt("a"), attempt("c")]);
    expect(await list(OTHER, "none")).toEqual([elsewhere]);
    expect(await list(OTHER, LEASE)).toEqual([attempt("a"), elsewhere, attempt("c")]);
    expect(await list("none")).toEqual([]);
    expect(await list()).toEqual([]);
  });

  it("lists an attempt no longer when it has ended or lost its lease", async (storage) => {
    await underTwoLeases(storage);
    await endAttempt(storage, attempt("a"), success(1));
    expect(await storage.listAttempts({ leaseIds: [LEASE] })).toEqual([attempt("c")]);
    await storage.closeLease({ leaseId: LEASE, nowMs: NOW_MS });
    expect(await storage.listAttempts({ leaseIds: [LEASE] })).toEqual([]);
    await claim(storage, { leaseId: OTHER, limit: 1 });
    const found = await storage.listAttempts({ leaseIds: [LEASE, OTHER] });
    expect(found.map(({ leaseId }) => leaseId)).toEqual([OTHER, OTHER]);
  });

  it("asks for the abort of an attempt, which its holder finds", async (storage) => {
    await underTwoLeases(storage);
    expect(await storage.listAborts({ leaseIds: [LEASE, OTHER] })).toEqual([]);
    const running = await storage.getTask(key("a"));
    expect(await storage.requestAbort(key("a"))).toEqual(running);
    expect(await storage.requestAbort(key("a"))).toEqual(running);
    expect(await storage.listAborts({ leaseIds: [LEASE, OTHER] })).toEqual([attempt("a")]);
    expect(await storage.listAborts({ leaseIds: [OTHER] })).toEqual([]);
    expect(await storage.listAborts({ leaseIds: [] })).toEqual([]);
    await endAttempt(storage, attempt("a"), { status: "cancelled" });
    expect(await storage.listAborts({ leaseIds: [LEASE] })).toEqual([]);
  });

  it("only answers a task that does not run", async (storage) => {
    await openLease(storage);
    await submit(storage, newTask("a"));
    const ended = await startTask(storage, "b");
    await endAttempt(storage, ended, success(1));
    for (const taskId of ["a", "b"]) {
      const task = await storage.getTask(key(taskId));
      expect(await storage.requestAbort(key(taskId))).toEqual(task);
      expect(await storage.getTask(key(taskId))).toEqual(task);
    }
    expect(await storage.requestAbort(key("nothing"))).toBeUndefined();
    expect(await storage.requestAbort(key("a", "deployment-2"))).toBeUndefined();
    await claim(storage);
    expect(await storage.listAborts({ leaseIds: [LEASE] })).toEqual([]);
  });

  it("does not ask for the abort of the next attempt", async (storage) => {
    const first = await startTask(storage, "a");
    await storage.requestAbort(key("a"));
    await endAttempt(storage, first, { status: "queued", failed: false, failure: FAILURE });
    expect(await storage.listAborts({ leaseIds: [LEASE] })).toEqual([]);
    await claim(storage);
    expect(await storage.listAttempts({ leaseIds: [LEASE] })).toEqual([
      attempt("a", { attempt: 2 }),
    ]);
    expect(await storage.listAborts({ leaseIds: [LEASE] })).toEqual([]);
  });
}
