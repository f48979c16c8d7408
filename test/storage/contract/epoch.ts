import { expect } from "vitest";
import { MAX_LOST_WORKERS } from "../../../src/tasks/lost.ts";
import type { Contract } from "../contract.ts";
import {
  attempt,
  claim,
  counts,
  endAttempt,
  key,
  LEASE,
  NOW_MS,
  newTask,
  openLease,
  startTask,
  submit,
  success,
  TTL_MS,
} from "../fixtures.ts";

/** After the last change event of the earlier life. */
const LATER_MS = NOW_MS + 1_000;

export function epochContract({ it }: Contract): void {
  it("returns running tasks to the queue, and leaves the others as they are", async (storage) => {
    await startTask(storage, "a");
    await startTask(storage, "b");
    await endAttempt(storage, attempt("b"), success("done"));
    await submit(storage, newTask("c"), newTask("d", { runAtMs: NOW_MS + 60_000 }));
    const before = await Promise.all(["b", "c", "d"].map((id) => storage.getTask(key(id))));
    expect(await storage.beginEpoch({ nowMs: LATER_MS })).toBe(1);
    expect(await storage.getTask(key("a"))).toMatchObject({ status: "queued", attempt: 1 });
    expect(await Promise.all(["b", "c", "d"].map((id) => storage.getTask(key(id))))).toEqual(
      before,
    );
    expect(await counts(storage)).toEqual([{ endpoint: "work", queued: 3, running: 0 }]);
  });

  it("ends every lease: what held one changes nothing any more", async (storage) => {
    const running = await startTask(storage, "a");
    await storage.beginEpoch({ nowMs: LATER_MS });
    expect(await endAttempt(storage, running, success("late"))).toBeUndefined();
    const renewed = { leaseIds: [LEASE], nowMs: LATER_MS, ttlMs: TTL_MS };
    expect(await storage.renewLeases(renewed)).toEqual([]);
    expect(await storage.rescueExpired({ nowMs: LATER_MS, all: true })).toEqual([]);
    await openLease(storage, "lease-2");
    const [again] = await claim(storage, { leaseId: "lease-2", nowMs: LATER_MS });
    expect(again?.task).toMatchObject({ taskId: "a", attempt: 2 });
  });

  it("counts no lost worker: a restore is not the fault of a task", async (storage) => {
    await startTask(storage, "a");
    for (let epoch = 0; epoch <= MAX_LOST_WORKERS; epoch += 1) {
      await storage.beginEpoch({ nowMs: LATER_MS });
      await openLease(storage);
      await claim(storage, { nowMs: LATER_MS });
    }
    expect(await storage.getTask(key("a"))).toMatchObject({ status: "running" });
    await storage.rescueExpired({ nowMs: LATER_MS, all: true });
    expect(await storage.getTask(key("a"))).toMatchObject({ status: "queued" });
  });

  it("leaves a gap in the change events, so that nobody takes a cache for current", async (storage) => {
    const { latest } = await storage.accounts.listChanges({ afterSequence: 0, limit: 10 });
    await storage.beginEpoch({ nowMs: LATER_MS });
    const changes = await storage.accounts.listChanges({ afterSequence: latest, limit: 10 });
    expect(changes.changes).toEqual([]);
    expect(changes.latest).toBeGreaterThan(latest + 1_000_000);
  });

  it("ends nodes: those that run are to say so themselves", async ({ hosting, beginEpoch }) => {
    await hosting.beat({ nodeId: "node-1", nowMs: NOW_MS, ttlMs: TTL_MS });
    expect(await hosting.listNodes({ nowMs: NOW_MS })).toHaveLength(1);
    await beginEpoch({ nowMs: NOW_MS });
    expect(await hosting.listNodes({ nowMs: NOW_MS })).toEqual([]);
  });

  it("tells of a few blobs that tasks name", async (storage) => {
    expect(await storage.findBlobs()).toEqual([]);
    const blob = { blobId: "b1", size: 300_000, sha256: "digest" };
    await storage.registerBlobs({ blobIds: ["b1", "b2"], deleteAfterMs: LATER_MS });
    expect(await storage.findBlobs()).toEqual([]);
    const files = [{ contentType: "image/png", blob }];
    await submit(storage, newTask("a", { arguments: { json: "{}", files } }));
    expect(await storage.findBlobs()).toEqual(["b1"]);
  });
}
