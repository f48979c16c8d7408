import { expect } from "vitest";
import type { NewTask, Storage, SubmitOutcome } from "../../../src/storage/storage.ts";
import type { Contract } from "../contract.ts";
import {
  attempt,
  claim,
  counts,
  DEPLOYMENT,
  ENDPOINT,
  endAttempt,
  FAILURE,
  json,
  key,
  LEASE,
  NOW_MS,
  newTask,
  openLease,
  RETENTION_MS,
  startTask,
  submit,
  success,
} from "../fixtures.ts";

const IDEMPOTENT: Partial<NewTask> = { idempotency: { key: "order-7", digest: "d1" } };

function brief(outcomes: readonly SubmitOutcome[]) {
  return outcomes.map((one) => ("task" in one ? `${one.outcome} ${one.task.taskId}` : one.outcome));
}

export function submitContract({ it }: Contract): void {
  it("stores a task as queued, with everything it was given", async (storage) => {
    const task = newTask("a", {
      retryOf: "earlier",
      trace: "00-trace",
      arguments: json({ n: 1 }),
      priority: 7,
      runAtMs: NOW_MS + 5,
      startByMs: NOW_MS + 9,
    });
    const [outcome] = await storage.submitTasks({ tasks: [task] });
    const stored = {
      deploymentId: DEPLOYMENT,
      taskId: "a",
      endpoint: ENDPOINT,
      status: "queued",
      priority: 7,
      createdAtMs: NOW_MS,
      runAtMs: NOW_MS + 5,
      startByMs: NOW_MS + 9,
      startedAtMs: undefined,
      finishedAtMs: undefined,
      expiresAtMs: NOW_MS + RETENTION_MS,
      attempt: 0,
      failedAttempts: 0,
      worker: undefined,
      returned: [],
      progress: undefined,
      retryOf: "earlier",
      schedule: undefined,
      failure: undefined,
      trace: "00-trace",
      lastSequence: 1,
    };
    expect(outcome).toEqual({ outcome: "stored", task: stored });
    expect(await storage.getTask(key("a"))).toEqual(stored);
    expect(await storage.getArguments(key("a"))).toEqual(json({ n: 1 }));
    expect(await storage.getResult(key("a"))).toBeUndefined();
  });

  it("answers undefined for a task that does not exist", async (storage) => {
    expect(await storage.getTask(key("none"))).toBeUndefined();
    expect(await storage.getArguments(key("none"))).toBeUndefined();
    expect(await storage.getResult(key("none"))).toBeUndefined();
    const history = { ...key("none"), afterSequence: 0, limit: 10 };
    expect(await storage.getHistory(history)).toBeUndefined();
    expect(await storage.cancelTask({ ...key("none"), nowMs: NOW_MS })).toBeUndefined();
  });

  it("stores a task as running under an open lease", async (storage) => {
    await openLease(storage);
    const [outcome] = await storage.submitTasks({ tasks: [newTask("a", { leaseId: LEASE })] });
    expect(outcome).toMatchObject({
      outcome: "stored",
      task: { status: "running", attempt: 1, startedAtMs: NOW_MS, lastSequence: 2 },
    });
    expect(await claim(storage)).toEqual([]);
    expect(await endAttempt(storage, attempt("a"), success(1))).toMatchObject({
      status: "success",
    });
  });

  it("queues a task whose lease has gone, so that another worker claims it", async (storage) => {
    await openLease(storage);
    await storage.closeLease({ leaseId: LEASE, nowMs: NOW_MS });
    const [outcome] = await storage.submitTasks({ tasks: [newTask("a", { leaseId: LEASE })] });
    expect(outcome).toMatchObject({ outcome: "stored", task: { status: "queued", attempt: 0 } });
    await openLease(storage, "lease-2");
    expect(await claim(storage, { leaseId: "lease-2" })).toHaveLength(1);
  });

  it("answers the first task when an idempotency key is used again", async (storage) => {
    await submit(storage, newTask("a", IDEMPOTENT));
    const [again] = await storage.submitTasks({ tasks: [newTask("b", IDEMPOTENT)] });
    expect(again).toMatchObject({ outcome: "replayed", task: { taskId: "a", status: "queued" } });
    expect(await storage.getTask(key("b"))).toBeUndefined();
    expect(await counts(storage)).toEqual([{ endpoint: ENDPOINT, queued: 1, running: 0 }]);
  });

  it("answers a replay with the task as it is now", async (storage) => {
    await openLease(storage);
    await submit(storage, newTask("a", { ...IDEMPOTENT, leaseId: LEASE }));
    await endAttempt(storage, attempt("a"), success(1));
    const [again] = await storage.submitTasks({ tasks: [newTask("b", IDEMPOTENT)] });
    expect(again).toMatchObject({ outcome: "replayed", task: { taskId: "a", status: "success" } });
  });

  it("refuses an idempotency key that was used with other arguments", async (storage) => {
    await submit(storage, newTask("a", IDEMPOTENT));
    const other = newTask("b", { idempotency: { key: "order-7", digest: "d2" } });
    expect(await storage.submitTasks({ tasks: [other] })).toEqual([{ outcome: "key_reused" }]);
    expect(await storage.getTask(key("b"))).toBeUndefined();
  });

  const endedBadly = {
    failed: (storage: Storage) =>
      endAttempt(storage, attempt("a"), { status: "failure", failure: FAILURE }),
    "was cancelled": (storage: Storage) =>
      endAttempt(storage, attempt("a"), { status: "cancelled" }),
  };
  for (const [how, end] of Object.entries(endedBadly)) {
    it(`gives the key of a task that ${how} to the next one, which then holds it`, async (storage) => {
      await startTask(storage, "a", IDEMPOTENT);
      await end(storage);
      const tasks = [newTask("b", IDEMPOTENT), newTask("c", IDEMPOTENT)];
      expect(brief(await storage.submitTasks({ tasks }))).toEqual(["stored b", "replayed b"]);
      // A repeated call whose answer was lost is about its own task.
      const [own] = await storage.submitTasks({
        tasks: [newTask("a", { ...IDEMPOTENT, repeated: true })],
      });
      expect(own).toMatchObject({ outcome: "stored", task: { taskId: "a" } });
      const nowMs = NOW_MS + RETENTION_MS;
      expect(await storage.pruneFinished({ nowMs, limit: 10 })).toBe(1);
      const [later] = await storage.submitTasks({ tasks: [newTask("d", IDEMPOTENT)] });
      expect(later).toMatchObject({ outcome: "replayed", task: { taskId: "b" } });
    });
  }

  it("gives the key of an expired task to the next one, with other arguments too", async (storage) => {
    await endAttempt(storage, await startTask(storage, "a", IDEMPOTENT), success(1));
    const createdAtMs = NOW_MS + RETENTION_MS;
    const [next] = await storage.submitTasks({
      tasks: [newTask("b", { idempotency: { key: "order-7", digest: "d2" }, createdAtMs })],
    });
    expect(next).toMatchObject({ outcome: "stored", task: { taskId: "b" } });
  });

  it("keeps the key of a task that failed for the same call, and where the caller asks for it always", async (storage) => {
    const failing = await startTask(storage, "a", IDEMPOTENT);
    await endAttempt(storage, failing, { status: "failure", failure: FAILURE });
    const other = newTask("b", { idempotency: { key: "order-7", digest: "d2" } });
    const always = newTask("c", {
      idempotency: { key: "order-7", digest: "d1", replay: "always" },
    });
    expect(brief(await storage.submitTasks({ tasks: [other, always] }))).toEqual([
      "key_reused",
      "replayed a",
    ]);
  });

  it("gives the key of a task that failed to one of many that ask for it at once", async (storage) => {
    const failing = await startTask(storage, "a", IDEMPOTENT);
    await endAttempt(storage, failing, { status: "failure", failure: FAILURE });
    const calls = Array.from({ length: 20 }, (_, index) =>
      storage.submitTasks({ tasks: [newTask(`t${index}`, IDEMPOTENT)] }),
    );
    const outcomes = (await Promise.all(calls)).flat();
    expect(outcomes.filter(({ outcome }) => outcome === "stored")).toHaveLength(1);
    const ids = new Set(outcomes.map((one) => "task" in one && one.task.taskId));
    expect([ids.size, ids.has("a")]).toEqual([1, false]);
  });

  it("keeps idempotency keys apart by endpoint and by deployment", async (storage) => {
    const outcomes = await storage.submitTasks({
      tasks: [
        newTask("a", IDEMPOTENT),
        newTask("b", { ...IDEMPOTENT, endpoint: "other" }),
        newTask("c", { ...IDEMPOTENT, deploymentId: "deployment-2" }),
      ],
    });
    expect(brief(outcomes)).toEqual(["stored a", "stored b", "stored c"]);
  });

  it("stores one task for an idempotency key that comes twice in one call", async (storage) => {
    const tasks = [newTask("a", IDEMPOTENT), newTask("b", IDEMPOTENT)];
    expect(brief(await storage.submitTasks({ tasks }))).toEqual(["stored a", "replayed a"]);
  });

  it("stores one task for an idempotency key that many calls use at once", async (storage) => {
    const calls = Array.from({ length: 20 }, (_, index) =>
      storage.submitTasks({ tasks: [newTask(`t${index}`, IDEMPOTENT)] }),
    );
    const outcomes = (await Promise.all(calls)).flat();
    const ids = new Set(outcomes.map((one) => "task" in one && one.task.taskId));
    expect(ids.size).toBe(1);
    expect(outcomes.filter(({ outcome }) => outcome === "stored")).toHaveLength(1);
  });

  it("refuses a task when its endpoint's queue is full", async (storage) => {
    const limited = (taskId: string) => newTask(taskId, { queueLimit: 2 });
    const outcomes = await storage.submitTasks({ tasks: ["a", "b", "c"].map(limited) });
    expect(brief(outcomes)).toEqual(["stored a", "stored b", "queue_full"]);
    expect(outcomes[2]).toEqual({ outcome: "queue_full", queued: 2 });
    const elsewhere = newTask("d", { queueLimit: 2, endpoint: "other" });
    expect(brief(await storage.submitTasks({ tasks: [elsewhere] }))).toEqual(["stored d"]);
  });

  it("counts a task that was stored before only once against the queue's limit", async (storage) => {
    await storage.submitTasks({ tasks: [newTask("a", { queueLimit: 2 })] });
    const tasks = [newTask("a", { queueLimit: 2 }), newTask("b", { queueLimit: 2 })];
    const outcomes = await storage.submitTasks({
      tasks: [...tasks, newTask("c", { queueLimit: 2 })],
    });
    expect(brief(outcomes)).toEqual(["stored a", "stored b", "queue_full"]);
    expect(outcomes[2]).toEqual({ outcome: "queue_full", queued: 2 });
  });

  it("counts a delayed task against the queue's limit", async (storage) => {
    await submit(storage, newTask("a", { runAtMs: NOW_MS + 1_000 }));
    const outcomes = await storage.submitTasks({ tasks: [newTask("b", { queueLimit: 1 })] });
    expect(outcomes).toEqual([{ outcome: "queue_full", queued: 1 }]);
  });

  it("takes a claimed task although the queue is full", async (storage) => {
    await openLease(storage);
    await submit(storage, newTask("a"));
    const task = newTask("b", { queueLimit: 1, leaseId: LEASE });
    const [outcome] = await storage.submitTasks({ tasks: [task] });
    expect(outcome).toMatchObject({ outcome: "stored", task: { status: "running" } });
  });

  it("answers a repeated call as the first time", async (storage) => {
    await openLease(storage);
    const tasks = [
      newTask("queued"),
      newTask("claimed", { leaseId: LEASE }),
      newTask("keyed", IDEMPOTENT),
    ];
    const first = await storage.submitTasks({ tasks });
    const repeated = tasks.map((task) => ({ ...task, repeated: true }));
    expect(await storage.submitTasks({ tasks: repeated })).toEqual(first);
    expect(await counts(storage)).toEqual([{ endpoint: ENDPOINT, queued: 2, running: 1 }]);
    expect(await claim(storage)).toHaveLength(2);
  });

  it("answers a repeated call with the task that has ended since", async (storage) => {
    await endAttempt(storage, await startTask(storage, "a"), success(1));
    const tasks = [newTask("a", { leaseId: LEASE, repeated: true }), newTask("b")];
    const outcomes = await storage.submitTasks({ tasks });
    expect(outcomes[0]).toMatchObject({ outcome: "stored", task: { status: "success" } });
    expect(await counts(storage)).toEqual([{ endpoint: ENDPOINT, queued: 1, running: 0 }]);
  });

  it("answers a repeated call as the first time although the queue is full now", async (storage) => {
    const tasks = [newTask("a", { queueLimit: 1 })];
    const first = await storage.submitTasks({ tasks });
    expect(await storage.submitTasks({ tasks })).toEqual(first);
  });

  it("answers in the order of the tasks that were given", async (storage) => {
    await submit(storage, newTask("first", IDEMPOTENT));
    const outcomes = await storage.submitTasks({
      tasks: [
        newTask("z", { queueLimit: 2 }),
        newTask("y", IDEMPOTENT),
        newTask("x", { queueLimit: 2 }),
        newTask("w", { idempotency: { key: "order-7", digest: "d2" } }),
        newTask("v"),
      ],
    });
    const expected = ["stored z", "replayed first", "queue_full", "key_reused", "stored v"];
    expect(brief(outcomes)).toEqual(expected);
  });
}
