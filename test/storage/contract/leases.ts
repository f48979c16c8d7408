import { expect } from "vitest";
import type { Storage } from "../../../src/storage/storage.ts";
import { WORKER_LOST } from "../../../src/tasks/failure.ts";
import { MAX_LOST_NODES, MAX_LOST_WORKERS } from "../../../src/tasks/lost.ts";
import type { Contract } from "../contract.ts";
import {
  attempt,
  claim,
  counts,
  DEPLOYMENT,
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
  taskIds,
} from "../fixtures.ts";

function renew(storage: Storage, leaseIds: readonly string[], nowMs: number) {
  return storage.renewLeases({ leaseIds, nowMs, ttlMs: TTL_MS });
}

/** What a node is told that there is to do. */
async function toDo(storage: Storage, nowMs: number, deploymentIds = [DEPLOYMENT, OTHER]) {
  const { due, ...others } = await storage.survey({ nowMs, deploymentIds });
  return { ...others, due: due.map((each) => `${each.deploymentId}/${each.endpoint}`).sort() };
}

function openRemote(storage: Storage): Promise<void> {
  const session = "secret";
  return storage.openLease({
    leaseId: "remote",
    owner: "test",
    session,
    nowMs: NOW_MS,
    ttlMs: TTL_MS,
  });
}

function adopt(storage: Storage, changes: Partial<Parameters<Storage["adoptLease"]>[0]> = {}) {
  return storage.adoptLease({
    leaseId: "remote",
    session: "secret",
    newLeaseId: "adopted",
    newSession: "next secret",
    owner: "another",
    nowMs: NOW_MS,
    ttlMs: TTL_MS,
    ...changes,
  });
}

const OTHER = "deployment-2";
const NOTHING = { expiredLeases: false, overdueTasks: false, due: [], suspects: [], schedules: [] };

export function leasesContract({ it }: Contract): void {
  it("returns a claimed task to the queue when its lease expires", async (storage) => {
    const running = await startTask(storage, "a");
    expect(await storage.rescueExpired({ nowMs: NOW_MS + TTL_MS - 1 })).toEqual([]);
    const rescued = await storage.rescueExpired({ nowMs: NOW_MS + TTL_MS });
    expect(rescued).toMatchObject([{ taskId: "a", status: "queued", attempt: 1 }]);
    expect(await storage.getTask(key("a"))).toEqual(rescued[0]);
    expect(await endAttempt(storage, running, success("late"))).toBeUndefined();
    expect(await storage.rescueExpired({ nowMs: NOW_MS + TTL_MS })).toEqual([]);
    await openLease(storage, "lease-2");
    const [again] = await claim(storage, { leaseId: "lease-2", nowMs: NOW_MS + TTL_MS });
    expect(again?.task).toMatchObject({ taskId: "a", attempt: 2 });
  });

  it("keeps a task with its worker as long as the lease is renewed", async (storage) => {
    const running = await startTask(storage, "a");
    for (let beat = 1; beat <= 5; beat++) {
      const nowMs = NOW_MS + beat * (TTL_MS - 1);
      expect(await renew(storage, [LEASE], nowMs)).toEqual([LEASE]);
      expect(await storage.rescueExpired({ nowMs })).toEqual([]);
    }
    expect(await endAttempt(storage, running, success(1))).toMatchObject({ status: "success" });
  });

  it("answers the leases that still existed, in the order asked", async (storage) => {
    await openLease(storage, "x");
    await openLease(storage, "y");
    await openLease(storage, "z");
    await storage.closeLease({ leaseId: "y", nowMs: NOW_MS });
    expect(await renew(storage, ["z", "none", "y", "x"], NOW_MS)).toEqual(["z", "x"]);
    await storage.rescueExpired({ nowMs: NOW_MS + TTL_MS });
    expect(await renew(storage, ["x", "z"], NOW_MS + TTL_MS)).toEqual([]);
  });

  it("does not open a lost lease by renewing it", async (storage) => {
    await openLease(storage);
    await storage.closeLease({ leaseId: LEASE, nowMs: NOW_MS });
    await renew(storage, [LEASE], NOW_MS);
    await submit(storage, newTask("a"));
    expect(await claim(storage)).toEqual([]);
  });

  it("rescues only what was under the expired lease", async (storage) => {
    await startTask(storage, "a");
    await openLease(storage, "lease-2", NOW_MS + 1);
    await submit(storage, newTask("b", { leaseId: "lease-2" }), newTask("c"));
    const rescued = await storage.rescueExpired({ nowMs: NOW_MS + TTL_MS });
    expect(taskIds(rescued)).toEqual(["a"]);
    expect(await storage.getTask(key("b"))).toMatchObject({ status: "running" });
    expect(await renew(storage, ["lease-2"], NOW_MS + TTL_MS)).toEqual(["lease-2"]);
  });

  it("rescues everything at once when asked, of all deployments", async (storage) => {
    await startTask(storage, "a");
    await openLease(storage, "lease-2");
    const elsewhere = { deploymentId: "deployment-2", leaseId: "lease-2" };
    await submit(storage, newTask("b", elsewhere));
    const rescued = await storage.rescueExpired({ nowMs: NOW_MS, all: true });
    expect(taskIds(rescued).sort()).toEqual(["a", "b"]);
    expect(await renew(storage, [LEASE, "lease-2"], NOW_MS)).toEqual([]);
  });

  it("returns the attempts of a closed lease to the queue", async (storage) => {
    await startTask(storage, "a");
    await startTask(storage, "b");
    await endAttempt(storage, attempt("b"), success(1));
    const returned = await storage.closeLease({ leaseId: LEASE, nowMs: NOW_MS + 1 });
    expect(returned).toMatchObject([{ taskId: "a", status: "queued" }]);
    expect(await storage.closeLease({ leaseId: LEASE, nowMs: NOW_MS + 1 })).toEqual([]);
    expect(await counts(storage)).toEqual([{ endpoint: "work", queued: 1, running: 0 }]);
  });

  it("returns a task at once that lost a few nodes, then after a pause, and fails it at last", async (storage) => {
    await startTask(storage, "a");
    let nowMs = NOW_MS;
    const pausesMs: number[] = [];
    for (let lost = 1; lost <= MAX_LOST_NODES; lost++) {
      const [rescued] = await storage.rescueExpired({ nowMs, all: true });
      expect(rescued).toMatchObject({ status: "queued", worker: undefined });
      pausesMs.push((rescued?.runAtMs ?? 0) - nowMs);
      nowMs = rescued?.runAtMs ?? 0;
      await openLease(storage, LEASE, nowMs);
      expect(await claim(storage, { nowMs })).toHaveLength(1);
    }
    expect(pausesMs.slice(0, 3)).toEqual([0, 0, 0]);
    expect(Math.min(...pausesMs.slice(3))).toBeGreaterThan(0);
    expect(Math.max(...pausesMs)).toBeLessThanOrEqual(60_000);
    expect(await storage.rescueExpired({ nowMs, all: true })).toMatchObject([
      {
        status: "failure",
        failure: { reason: "node_lost", message: expect.stringContaining("11 times") },
      },
    ]);
  });

  it("spreads tasks that lost their node together again and again", async (storage) => {
    const taskIds = ["a", "b", "c", "d"];
    await startTask(storage, "a");
    await submit(storage, ...taskIds.slice(1).map((id) => newTask(id, { leaseId: LEASE })));
    for (let lost = 1; lost <= 3; lost++) {
      await storage.rescueExpired({ nowMs: NOW_MS, all: true });
      await openLease(storage);
      await claim(storage, { nowMs: NOW_MS, limit: 9 });
    }
    const rescued = await storage.rescueExpired({ nowMs: NOW_MS, all: true });
    expect(new Set(rescued.map(({ runAtMs }) => runAtMs)).size).toBe(taskIds.length);
  });

  it("does not count a lost node as a lost worker, nor the other way round", async (storage) => {
    await startTask(storage, "a");
    for (let lost = 1; lost <= MAX_LOST_WORKERS; lost++) {
      await storage.rescueExpired({ nowMs: NOW_MS, all: true });
      await openLease(storage);
      await claim(storage, { suspects: lost > 1 });
      const died = attempt("a", { attempt: 2 * lost });
      const task = await endAttempt(storage, died, { status: "worker_lost", failure: WORKER_LOST });
      expect(task?.status).toBe("queued");
      await claim(storage, { suspects: true });
    }
    const [rescued] = await storage.rescueExpired({ nowMs: NOW_MS, all: true });
    expect(rescued).toMatchObject({ status: "queued", failedAttempts: 0 });
  });

  it("tells where tasks could be claimed, of the deployments that are asked for", async (storage) => {
    expect(await toDo(storage, NOW_MS)).toEqual(NOTHING);
    await openLease(storage);
    await submit(
      storage,
      newTask("a"),
      newTask("b"),
      newTask("c", { endpoint: "runs", leaseId: LEASE }),
      newTask("d", { endpoint: "later", runAtMs: NOW_MS + 10 }),
      newTask("e", { deploymentId: OTHER }),
    );
    const due = [`${DEPLOYMENT}/work`, `${OTHER}/work`];
    expect(await toDo(storage, NOW_MS)).toEqual({ ...NOTHING, due });
    expect(await toDo(storage, NOW_MS, [OTHER])).toEqual({ ...NOTHING, due: [`${OTHER}/work`] });
    const later = await toDo(storage, NOW_MS + 10);
    expect(later.due).toEqual([`${DEPLOYMENT}/later`, ...due]);
  });

  it("tells of leases that expired and of tasks that were to start by now", async (storage) => {
    await openLease(storage);
    await submit(storage, newTask("a", { startByMs: NOW_MS + TTL_MS - 1 }));
    expect(await toDo(storage, NOW_MS, [])).toEqual(NOTHING);
    const overdue = { ...NOTHING, overdueTasks: true };
    expect(await toDo(storage, NOW_MS + TTL_MS - 1)).toEqual(overdue);
    const nowMs = NOW_MS + TTL_MS;
    expect(await toDo(storage, nowMs)).toEqual({ ...overdue, expiredLeases: true });
    await storage.rescueExpired({ nowMs });
    await storage.expireTasks({ nowMs, limit: 10 });
    expect(await toDo(storage, nowMs)).toEqual(NOTHING);
  });

  it("keeps a lease with a session until it expires, whatever becomes of its node", async (storage) => {
    await openRemote(storage);
    await submit(storage, newTask("a", { leaseId: "remote" }));
    expect(await storage.rescueExpired({ nowMs: NOW_MS + TTL_MS - 1, all: true })).toEqual([]);
    expect(await storage.getTask(key("a"))).toMatchObject({ status: "running" });
    const rescued = await storage.rescueExpired({ nowMs: NOW_MS + TTL_MS, all: true });
    expect(rescued).toMatchObject([{ taskId: "a", status: "queued" }]);
  });

  it("moves what is under a lease to another that has its session, and fences the one before", async (storage) => {
    await openRemote(storage);
    await submit(storage, newTask("a", { leaseId: "remote" }), newTask("b", { leaseId: "remote" }));
    await endAttempt(storage, attempt("b", { leaseId: "remote" }), success(1));
    expect(await adopt(storage, { session: "guessed" })).toBeUndefined();
    const adopted = await adopt(storage);
    expect(adopted).toEqual([{ leaseId: "adopted", task: await storage.getTask(key("a")) }]);
    expect(adopted?.[0]?.task).toMatchObject({ taskId: "a", attempt: 1, status: "running" });
    expect(await renew(storage, ["remote", "adopted"], NOW_MS)).toEqual(["adopted"]);
    expect(await storage.closeLease({ leaseId: "remote", nowMs: NOW_MS })).toEqual([]);
    const before = attempt("a", { leaseId: "remote" });
    expect(await endAttempt(storage, before, success("late"))).toBeUndefined();
    const now = attempt("a", { leaseId: "adopted" });
    expect(await endAttempt(storage, now, success(2))).toMatchObject({ status: "success" });
    expect(await adopt(storage)).toBeUndefined();
  });

  it("lets one of two nodes adopt a lease", async (storage) => {
    await openRemote(storage);
    await submit(storage, newTask("a", { leaseId: "remote" }));
    const both = await Promise.all([
      adopt(storage, { newLeaseId: "x" }),
      adopt(storage, { newLeaseId: "y" }),
    ]);
    expect(both.filter((adopted) => adopted !== undefined)).toHaveLength(1);
  });

  it("adopts no lease without a session", async (storage) => {
    await openLease(storage, "remote");
    expect(await adopt(storage)).toBeUndefined();
    expect(await adopt(storage, { leaseId: "none" })).toBeUndefined();
  });

  it("opens a lease again with the same call, prolonging it", async (storage) => {
    const running = await startTask(storage, "a");
    await openLease(storage, LEASE, NOW_MS + 5_000);
    expect(await storage.rescueExpired({ nowMs: NOW_MS + TTL_MS })).toEqual([]);
    expect(await endAttempt(storage, running, success(1))).toMatchObject({ status: "success" });
  });
}
