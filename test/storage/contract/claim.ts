import { expect } from "vitest";
import type { Contract } from "../contract.ts";
import {
  attempt,
  claim,
  counts,
  DEPLOYMENT,
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
  taskIds,
} from "../fixtures.ts";

export function claimContract({ it }: Contract): void {
  it("gives a claimed task with its arguments, attempt 1", async (storage) => {
    await openLease(storage);
    await submit(storage, newTask("a", { arguments: json({ n: 3 }) }));
    const [claimed, ...more] = await claim(storage, { nowMs: NOW_MS + 5 });
    expect(more).toEqual([]);
    expect(claimed).toMatchObject({ leaseId: LEASE, arguments: json({ n: 3 }) });
    expect(claimed?.task).toMatchObject({
      status: "running",
      attempt: 1,
      startedAtMs: NOW_MS + 5,
      lastSequence: 2,
    });
    expect(await storage.getTask(key("a"))).toEqual(claimed?.task);
  });

  it("claims exactly the limit, and nothing twice", async (storage) => {
    await openLease(storage);
    await submit(storage, ...["a", "b", "c", "d", "e"].map((taskId) => newTask(taskId)));
    const first = taskIds(await claim(storage, { limit: 2 }));
    const second = taskIds(await claim(storage, { limit: 10 }));
    expect(first).toHaveLength(2);
    expect(second).toHaveLength(3);
    expect(new Set([...first, ...second]).size).toBe(5);
    expect(await claim(storage)).toEqual([]);
    expect(await claim(storage, { limit: 0 })).toEqual([]);
  });

  it("claims the highest priority first, then what is due longest", async (storage) => {
    await openLease(storage);
    await submit(
      storage,
      newTask("low", { priority: -1, runAtMs: NOW_MS - 9 }),
      newTask("late", { runAtMs: NOW_MS - 1 }),
      newTask("high", { priority: 5 }),
      newTask("early", { runAtMs: NOW_MS - 2 }),
    );
    expect(taskIds(await claim(storage, { limit: 3 }))).toEqual(["high", "early", "late"]);
    expect(taskIds(await claim(storage))).toEqual(["low"]);
  });

  it("claims for several endpoints and leases in one call, in their order", async (storage) => {
    await openLease(storage, "lease-1");
    await openLease(storage, "lease-2");
    await submit(
      storage,
      newTask("a1", { runAtMs: NOW_MS - 3 }),
      newTask("a2", { runAtMs: NOW_MS - 2 }),
      newTask("a3", { runAtMs: NOW_MS - 1 }),
      newTask("b1", { endpoint: "other" }),
    );
    const { tasks: claimed } = await storage.claimTasks({
      deploymentId: DEPLOYMENT,
      nowMs: NOW_MS,
      claims: [
        { endpoint: "other", leaseId: "lease-1", limit: 2 },
        { endpoint: "work", leaseId: "lease-2", limit: 1 },
        { endpoint: "work", leaseId: "lease-1", limit: 5 },
      ],
    });
    expect(claimed.map(({ task, leaseId }) => [task.taskId, leaseId])).toEqual([
      ["b1", "lease-1"],
      ["a1", "lease-2"],
      ["a2", "lease-1"],
      ["a3", "lease-1"],
    ]);
  });

  it("claims nothing for a lease that was never opened or is closed", async (storage) => {
    await openLease(storage);
    await storage.closeLease({ leaseId: LEASE, nowMs: NOW_MS });
    await submit(storage, newTask("a"));
    expect(await claim(storage)).toEqual([]);
    expect(await claim(storage, { leaseId: "unknown" })).toEqual([]);
    expect(await storage.getTask(key("a"))).toMatchObject({ status: "queued", attempt: 0 });
    expect(await counts(storage)).toEqual([{ endpoint: "work", queued: 1, running: 0 }]);
  });

  it("claims a delayed task when it is due and not before", async (storage) => {
    await openLease(storage);
    await submit(storage, newTask("a", { runAtMs: NOW_MS + 1_000 }));
    expect(await claim(storage, { nowMs: NOW_MS + 999 })).toEqual([]);
    expect(taskIds(await claim(storage, { nowMs: NOW_MS + 1_000 }))).toEqual(["a"]);
  });

  it("claims a delayed task that is due however many of another endpoint are", async (storage) => {
    const delayed = (taskId: string, dueMs: number) =>
      newTask(taskId, { createdAtMs: NOW_MS - 5_000, runAtMs: dueMs, queueLimit: 2_000 });
    const long = Array.from({ length: 1_500 }, (_, index) => `t${String(index).padStart(4, "0")}`);
    await openLease(storage);
    await submit(storage, ...long.map((taskId, index) => delayed(taskId, NOW_MS - 4_000 + index)));
    await submit(storage, { ...delayed("b", NOW_MS - 1), endpoint: "other" });
    expect(taskIds(await claim(storage, { endpoint: "other" }))).toEqual(["b"]);
    // One call finds a part of them, and the next one goes on from there.
    const first = taskIds(await claim(storage, { limit: 2_000 }));
    expect(first.length).toBeGreaterThan(0);
    expect(first.length).toBeLessThanOrEqual(1_000);
    const second = taskIds(await claim(storage, { limit: 2_000 }));
    expect([...first, ...second]).toEqual(long);
  });

  it("claims a delayed task that is due however many due before it have expired", async (storage) => {
    const delayed = (taskId: string, dueMs: number) =>
      newTask(taskId, { createdAtMs: NOW_MS - 5_000, runAtMs: dueMs, queueLimit: 2_000 });
    const expired = Array.from({ length: 1_500 }, (_, index) => ({
      ...delayed(`t${index}`, NOW_MS - 4_000 + index),
      startByMs: NOW_MS,
    }));
    await openLease(storage);
    await submit(storage, ...expired, { ...delayed("good", NOW_MS - 1), startByMs: NOW_MS + 1 });
    expect(taskIds(await claim(storage, { limit: 2_000 }))).toEqual(["good"]);
  });

  it("claims a due task although the clock of the claimer is behind", async (storage) => {
    await openLease(storage);
    await submit(storage, newTask("a"));
    expect(taskIds(await claim(storage, { nowMs: NOW_MS - 50 }))).toEqual(["a"]);
  });

  it("tells when the next delayed task becomes due", async (storage) => {
    const next = (nowMs: number) => storage.nextRunAt({ deploymentId: DEPLOYMENT, nowMs });
    await openLease(storage);
    await submit(storage, newTask("now"), newTask("b", { deploymentId: "deployment-2" }));
    expect(await next(NOW_MS)).toBeUndefined();
    await submit(
      storage,
      newTask("later", { runAtMs: NOW_MS + 2_000 }),
      newTask("soon", { runAtMs: NOW_MS + 1_000, endpoint: "other" }),
      newTask("elsewhere", { runAtMs: NOW_MS + 500, deploymentId: "deployment-2" }),
    );
    expect(await next(NOW_MS)).toBe(NOW_MS + 1_000);
    expect(await next(NOW_MS + 1_000)).toBe(NOW_MS + 2_000);
    await storage.cancelTask({ ...key("later"), nowMs: NOW_MS });
    expect(await next(NOW_MS + 1_000)).toBeUndefined();
  });

  it("tells when a task that waits for its next attempt becomes due", async (storage) => {
    await openLease(storage);
    await submit(storage, newTask("a", { leaseId: LEASE }));
    await endAttempt(storage, attempt("a"), {
      status: "queued",
      runAtMs: NOW_MS + 700,
      failed: true,
      failure: FAILURE,
    });
    expect(await storage.nextRunAt({ deploymentId: DEPLOYMENT, nowMs: NOW_MS })).toBe(NOW_MS + 700);
  });

  it("gives every task to one claimer only when many claim at once", async (storage) => {
    const leases = Array.from({ length: 8 }, (_, index) => `lease-${index}`);
    await Promise.all(leases.map((leaseId) => openLease(storage, leaseId)));
    const ids = Array.from({ length: 200 }, (_, index) => `t${index}`);
    const submits = ids.map((taskId) => submit(storage, newTask(taskId)));
    const claims = Array.from({ length: 80 }, (_, index) =>
      claim(storage, { leaseId: leases[index % leases.length] ?? LEASE, limit: 3 }),
    );
    await Promise.all(submits);
    const rest = leases.map((leaseId) => claim(storage, { leaseId, limit: 100 }));
    const claimed = taskIds((await Promise.all([...claims, ...rest])).flat());
    expect(claimed.sort()).toEqual(ids.sort());
    expect(await counts(storage)).toEqual([{ endpoint: "work", queued: 0, running: 200 }]);
  });

  it("cancels many at once, each once, and leaves what runs or has ended", async (storage) => {
    const running = await startTask(storage, "running");
    await endAttempt(storage, await startTask(storage, "ended"), success(1));
    const ids = Array.from({ length: 30 }, (_, number) => `t-${number}`);
    await submit(
      storage,
      ...ids.map((id) => newTask(id)),
      newTask("t-1", { deploymentId: "other" }),
    );
    const asked = [...ids, "running", "t-1", "ended", "nobody"];
    const outcomes = await Promise.all(
      asked.map((id) => storage.cancelTask({ ...key(id), nowMs: NOW_MS + 7 })),
    );
    expect(outcomes.map((found) => found && [found.outcome, found.task.status])).toEqual([
      ...ids.map(() => ["cancelled", "cancelled"]),
      ...[
        ["not_queued", "running"],
        ["not_queued", "cancelled"],
        ["not_queued", "success"],
      ],
      undefined,
    ]);
    expect(outcomes[3]?.task).toEqual(await storage.getTask(key("t-3")));
    expect(await counts(storage)).toEqual([{ endpoint: "work", queued: 0, running: 1 }]);
    expect(await storage.getTask(key("t-1", "other"))).toMatchObject({ status: "queued" });
    expect(await endAttempt(storage, running, success(2))).toMatchObject({ status: "success" });
  });

  it("cancels a queued task, due or not, which is then never claimed", async (storage) => {
    await openLease(storage);
    await submit(storage, newTask("a"), newTask("b", { runAtMs: NOW_MS + 1_000 }));
    for (const taskId of ["a", "b"]) {
      const outcome = await storage.cancelTask({ ...key(taskId), nowMs: NOW_MS + 7 });
      expect(outcome).toMatchObject({
        outcome: "cancelled",
        task: { taskId, status: "cancelled", finishedAtMs: NOW_MS + 7, attempt: 0 },
      });
    }
    expect(await claim(storage, { nowMs: NOW_MS + 5_000 })).toEqual([]);
    expect(await counts(storage)).toEqual([]);
  });

  it("does not cancel a task that runs or has ended", async (storage) => {
    await openLease(storage);
    await submit(storage, newTask("a", { leaseId: LEASE }));
    const running = await storage.getTask(key("a"));
    const cancel = () => storage.cancelTask({ ...key("a"), nowMs: NOW_MS + 1 });
    expect(await cancel()).toEqual({ outcome: "not_queued", task: running });
    const ended = await endAttempt(storage, attempt("a"), { status: "cancelled" });
    expect(await cancel()).toEqual({ outcome: "not_queued", task: ended });
    expect(await storage.getTask(key("a"))).toEqual(ended);
  });

  it("keeps deployments with endpoints of one name apart", async (storage) => {
    const second = "deployment-2";
    await openLease(storage);
    await submit(storage, newTask("a"), newTask("a", { deploymentId: second }));
    const cancelled = await storage.cancelTask({ ...key("a", second), nowMs: NOW_MS });
    expect(cancelled).toMatchObject({ task: { deploymentId: second } });
    expect(await storage.getTask(key("a"))).toMatchObject({ status: "queued" });
    expect(await claim(storage, { deploymentId: second })).toEqual([]);
    expect(await claim(storage)).toHaveLength(1);
    expect(await counts(storage)).toEqual([{ endpoint: "work", queued: 0, running: 1 }]);
    expect(await counts(storage, second)).toEqual([]);
  });
}
