import { describe, expect } from "vitest";
import type { NewTask, Storage } from "../../../src/storage/storage.ts";
import { WORKER_LOST } from "../../../src/tasks/failure.ts";
import type { Contract } from "../contract.ts";
import {
  attempt,
  type ClaimOptions,
  claim,
  claimAndLook,
  DEPLOYMENT,
  ENDPOINT,
  endAttempt,
  FAILURE,
  key,
  LEASE,
  listAll,
  NOW_MS,
  newTask,
  openLease,
  startTask,
  submit,
  success,
  taskIds,
} from "../fixtures.ts";
import { timesContract } from "./times.ts";

export function keysContract({ it }: Contract): void {
  it("keeps the key of a task, and none for one without", async (storage) => {
    await openLease(storage);
    await submit(storage, newTask("a", { key: "Ada \"'\\ ü" }), newTask("b"));
    expect((await storage.getTask(key("a")))?.key).toBe("Ada \"'\\ ü");
    expect((await storage.getTask(key("b")))?.key).toBeUndefined();
    const claimed = await claim(storage);
    expect(claimed.map(({ task }) => task.key)).toEqual(["Ada \"'\\ ü", undefined]);
  });

  it("keeps the key over returns to the queue and after the end", async (storage) => {
    await openLease(storage);
    const stored = newTask("a", { key: "ada", leaseId: LEASE });
    const [outcome] = await storage.submitTasks({ tasks: [stored] });
    expect(outcome).toMatchObject({ task: { status: "running", key: "ada" } });
    const retry = { status: "queued", failed: true, runAtMs: NOW_MS, failure: FAILURE } as const;
    expect((await endAttempt(storage, attempt("a"), retry))?.key).toBe("ada");
    const [again] = await claim(storage);
    expect(again?.task).toMatchObject({ attempt: 2, key: "ada" });
    const ended = await endAttempt(storage, attempt("a", { attempt: 2 }), success(1));
    expect(ended?.key).toBe("ada");
    expect((await storage.getTask(key("a")))?.key).toBe("ada");
  });

  it("keeps the key of a task that was cancelled before it started", async (storage) => {
    await submit(storage, newTask("a", { key: "ada" }));
    await storage.cancelTask({ ...key("a"), nowMs: NOW_MS });
    expect(await storage.getTask(key("a"))).toMatchObject({ status: "cancelled", key: "ada" });
  });

  it("lists, finds and counts the tasks of a key", async (storage) => {
    const ended = await startTask(storage, "0", { key: "ada" });
    await endAttempt(storage, ended, success(1));
    await submit(storage, newTask("1", { key: "ada" }), newTask("2", { key: "bob" }), newTask("3"));
    const listed = await listAll(storage, { deploymentId: DEPLOYMENT, key: "ada", limit: 10 });
    expect(taskIds(listed)).toEqual(["1", "0"]);
    const search = { deploymentIds: [DEPLOYMENT], key: "ada" };
    const found = await storage.searchTasks({ ...search, limit: 10 });
    expect(taskIds(found.tasks)).toEqual(["1", "0"]);
    const queued = await storage.searchTasks({ ...search, statuses: ["queued"], limit: 10 });
    expect(taskIds(queued.tasks)).toEqual(["1"]);
    const counted = await storage.countStates({ ...search, nowMs: NOW_MS });
    expect(counted).toMatchObject({ queued: { count: 1 }, success: { count: 1 } });
  });

  it("claims the tasks of keys in turn, from the one after the last on", async (storage) => {
    await openLease(storage);
    const many = Array.from({ length: 5 }, (_, number) => newTask(`a${number}`, { key: "a" }));
    await submit(storage, ...many, newTask("b0", { key: "b" }), newTask("b1", { key: "b" }));
    await submit(storage, newTask("none", { key: "" }));
    expect(taskIds(await claim(storage, { limit: 4, byKey: {} }))).toEqual([
      ...["a0", "b0", "none", "a1"],
    ]);
    await submit(storage, newTask("c0", { key: "c" }));
    expect(taskIds(await claim(storage, { limit: 2, byKey: {} }))).toEqual(["b1", "c0"]);
    expect(taskIds(await claim(storage, { byKey: {} }))).toEqual(["a2", "a3", "a4"]);
  });

  it("claims the highest priority of a key first, then what is due longest", async (storage) => {
    await openLease(storage);
    const later = { key: "a", runAtMs: NOW_MS + 5 };
    await submit(storage, newTask("0", later), newTask("1", { key: "a" }));
    await submit(storage, newTask("2", { key: "a", priority: 1 }));
    const claimed = await claim(storage, { nowMs: NOW_MS + 10, byKey: {} });
    expect(taskIds(claimed)).toEqual(["2", "1", "0"]);
  });

  it("runs no more of a key than allowed, and the next one when one has ended", async (storage) => {
    await openLease(storage);
    await openLease(storage, "other");
    const byKey = { concurrency: 2 };
    const many = Array.from({ length: 5 }, (_, number) => newTask(`a${number}`, { key: "a" }));
    await submit(storage, ...many, newTask("b", { key: "b" }));
    expect(taskIds(await claim(storage, { byKey }))).toEqual(["a0", "b", "a1"]);
    expect(await claim(storage, { byKey, leaseId: "other" })).toEqual([]);
    await endAttempt(storage, attempt("a0"), success(1));
    expect(taskIds(await claim(storage, { byKey, leaseId: "other" }))).toEqual(["a2"]);
    const retry = { status: "queued", failed: true, runAtMs: NOW_MS, failure: FAILURE } as const;
    await endAttempt(storage, attempt("a1"), retry);
    expect(taskIds(await claim(storage, { byKey }))).toEqual(["a1"]);
    expect(await claim(storage, { byKey: { concurrency: 1 } })).toEqual([]);
  });

  it("gives the room of a key back with the lease of who ran its tasks", async (storage) => {
    await openLease(storage);
    await openLease(storage, "other");
    const byKey = { concurrency: 1 };
    await submit(storage, newTask("0", { key: "a" }), newTask("1", { key: "a" }));
    expect(taskIds(await claim(storage, { byKey }))).toEqual(["0"]);
    expect(await claim(storage, { byKey, leaseId: "other" })).toEqual([]);
    await storage.closeLease({ leaseId: LEASE, nowMs: NOW_MS });
    expect(await claim(storage, { byKey, leaseId: "other" })).toHaveLength(1);
  });

  it("counts suspects of a key, too", async (storage) => {
    await openLease(storage);
    const byKey = { concurrency: 1 };
    await submit(storage, newTask("0", { key: "a" }), newTask("1", { key: "a" }));
    await claim(storage, { byKey });
    await endAttempt(storage, attempt("0"), { status: "worker_lost", failure: WORKER_LOST });
    expect(taskIds(await claim(storage, { byKey }))).toEqual(["1"]);
    expect(await claim(storage, { byKey, suspects: true })).toEqual([]);
    await endAttempt(storage, attempt("1"), success(1));
    expect(taskIds(await claim(storage, { byKey, suspects: true }))).toEqual(["0"]);
  });

  it("takes tasks without a key that were stored before for those of one key", async (storage) => {
    await openLease(storage);
    await submit(storage, newTask("0"), newTask("1"), newTask("2", { key: "a" }));
    await submit(storage, newTask("3", { runAtMs: NOW_MS + 5 }));
    const byKey = { concurrency: 1, unkeyed: true };
    expect(taskIds(await claim(storage, { byKey })).sort()).toEqual(["0", "2"]);
    await endAttempt(storage, attempt("0"), success(1));
    expect(taskIds(await claim(storage, { byKey }))).toEqual(["1"]);
    await endAttempt(storage, attempt("1"), success(1));
    const due = { nowMs: NOW_MS + 10, byKey: { concurrency: 1 } };
    expect(taskIds(await claim(storage, due))).toEqual(["3"]);
  });

  it("claims all tasks in the order of the queue where keys do not count", async (storage) => {
    await openLease(storage);
    await submit(storage, newTask("0", { key: "b" }), newTask("1", { key: "a" }), newTask("2"));
    expect(taskIds(await claim(storage))).toEqual(["0", "1", "2"]);
  });

  it("never runs more of a key than allowed, however many claim at once", async (storage) => {
    const leases = Array.from({ length: 8 }, (_, number) => `lease-${number}`);
    await Promise.all(leases.map((leaseId) => openLease(storage, leaseId)));
    const many = Array.from({ length: 40 }, (_, number) =>
      newTask(String(number).padStart(2, "0"), { key: `k${number % 4}` }),
    );
    await submit(storage, ...many);
    const byKey = { concurrency: 3 };
    const claimed = await Promise.all(
      leases.map((leaseId) => claim(storage, { leaseId, limit: 5, byKey })),
    );
    const keys = claimed.flat().map(({ task }) => task.key);
    expect(keys.sort()).toEqual(["k0", "k1", "k2", "k3"].flatMap((one) => [one, one, one]));
  });

  it("finds the next keys among 10,000 with one task each", async (storage) => {
    await openLease(storage);
    const many = Array.from({ length: 10_000 }, (_, number) => {
      const taskId = String(number).padStart(5, "0");
      return newTask(taskId, { key: taskId, queueLimit: 20_000 });
    });
    for (let at = 0; at < many.length; at += 1_000) {
      await submit(storage, ...many.slice(at, at + 1_000));
    }
    const byKey = { concurrency: 1 };
    expect(taskIds(await claim(storage, { limit: 2, byKey }))).toEqual(["00000", "00001"]);
    expect(taskIds(await claim(storage, { limit: 2, byKey }))).toEqual(["00002", "00003"]);
  });

  it("looks at the keys that are named and at no others, and leaves the turns as they are", async (storage) => {
    await openLease(storage);
    const ofKey = (of: string) => [newTask(`${of}0`, { key: of }), newTask(`${of}1`, { key: of })];
    await submit(storage, ...["a", "b", "c", "d"].flatMap(ofKey));
    const byKey = { concurrency: 1 };
    expect(taskIds(await claim(storage, { limit: 1, byKey }))).toEqual(["a0"]);
    const named = await claimAndLook(storage, { byKey: { ...byKey, keys: ["d", "a", "e"] } });
    expect(named).toMatchObject({ tasks: [{ task: { taskId: "d0" } }], later: [] });
    expect(await claim(storage, { byKey: { ...byKey, keys: [] } })).toEqual([]);
    expect(taskIds(await claim(storage, { byKey }))).toEqual(["b0", "c0"]);
  });

  it("names the keys of delayed tasks that a claim has found due", async (storage) => {
    await openLease(storage);
    const dueMs = NOW_MS + 5;
    await submit(storage, newTask("0", { key: "a", runAtMs: dueMs }));
    await submit(storage, newTask("1", { key: "b" }), newTask("2", { key: "b", runAtMs: dueMs }));
    const byKey = { concurrency: 1, keys: [] };
    expect((await claimAndLook(storage, { byKey })).due).toBeUndefined();
    const { tasks, due } = await claimAndLook(storage, { byKey, nowMs: dueMs });
    expect(due?.map(({ endpoint, keys }) => [endpoint, keys.toSorted()])).toEqual([
      ["work", ["a", "b"]],
    ]);
    const found = [...tasks, ...(await claim(storage, { byKey: { ...byKey, keys: ["a", "b"] } }))];
    expect(taskIds(found).sort()).toEqual(["0", "1"]);
  });

  it("says when it has come past the last of the keys that it passes", async (storage) => {
    await openLease(storage);
    const overdue = Array.from({ length: 1_500 }, (_, number) => {
      const key = String(number).padStart(4, "0");
      return newTask(key, { key, startByMs: NOW_MS + 1, queueLimit: 2_000 });
    });
    await submit(storage, ...overdue);
    const late = { byKey: {}, nowMs: NOW_MS + 5, limit: 1 };
    const cuts: unknown[] = [];
    for (let part = 0; part < 4; part++) {
      const { later } = await claimAndLook(storage, late);
      cuts.push(later[0]?.cut);
    }
    expect(cuts).toEqual(["on", "around", "on", "around"]);
  });

  describe("rates", () => ratesContract({ it }));
  describe("seconds", () => timesContract({ it }));
}

/** When the first suspect of the endpoint may start. */
function nextSuspect(
  storage: Storage,
  { byKey, nowMs }: Required<Pick<ClaimOptions, "byKey" | "nowMs">>,
) {
  return storage.nextSuspect({ deploymentId: DEPLOYMENT, endpoint: ENDPOINT, nowMs, byKey });
}

const RATE = { count: 3, periodMs: 60_000 };
/** After so long a start counts no more. */
const OVER_MS = RATE.periodMs + 1;

function ratesContract({ it }: Pick<Contract, "it">): void {
  const submitMany = (storage: Storage, count: number, of: string, more: Partial<NewTask> = {}) => {
    const tasks = Array.from({ length: count }, (_, number) =>
      newTask(`${of}${number}`, { key: of, ...more }),
    );
    return submit(storage, ...tasks);
  };

  it("starts no more of a key in any window than its rate, and says when the next is due", async (storage) => {
    await openLease(storage);
    await submitMany(storage, 6, "a");
    await submitMany(storage, 1, "b");
    const byKey = { rate: RATE };
    const at = async (afterMs: number) => {
      const { tasks, later } = await claimAndLook(storage, { byKey, nowMs: NOW_MS + afterMs });
      return [taskIds(tasks), later.map(({ inMs }) => inMs)];
    };
    const first = await claimAndLook(storage, { byKey, limit: 2 });
    expect(taskIds(first.tasks)).toEqual(["a0", "b0"]);
    // As many as were asked for: the next claim says what comes later.
    expect(first.later).toEqual([]);
    expect(await at(1_000)).toEqual([["a1", "a2"], [OVER_MS - 1_000]]);
    expect(await at(RATE.periodMs)).toEqual([[], [1]]);
    expect(await at(OVER_MS)).toEqual([["a3"], [1_000]]);
    expect(await at(OVER_MS + 1_000)).toEqual([["a4", "a5"], []]);
  });

  it("counts every start, also of those that come back, and of suspects", async (storage) => {
    await openLease(storage);
    await submitMany(storage, 4, "a");
    const byKey = { rate: RATE };
    await claim(storage, { byKey, limit: 1 });
    const back = { status: "queued", failed: true, runAtMs: NOW_MS, failure: FAILURE } as const;
    await endAttempt(storage, attempt("a0"), back);
    await claim(storage, { byKey, limit: 1 });
    const lost = { status: "worker_lost", failure: WORKER_LOST } as const;
    await endAttempt(storage, attempt("a0", { attempt: 2 }), lost);
    expect(taskIds(await claim(storage, { byKey, suspects: true }))).toEqual(["a0"]);
    expect(await claim(storage, { byKey })).toEqual([]);
    await endAttempt(storage, attempt("a0", { attempt: 3 }), lost);
    expect(await claimAndLook(storage, { byKey, suspects: true, nowMs: NOW_MS + 10 })).toEqual({
      tasks: [],
      later: [],
    });
    expect(await nextSuspect(storage, { byKey, nowMs: NOW_MS + 10 })).toBe(OVER_MS - 10);
    expect(await nextSuspect(storage, { byKey, nowMs: NOW_MS + OVER_MS })).toBe(0);
    const busy = { ...byKey, concurrency: 1 };
    expect(await claim(storage, { byKey, nowMs: NOW_MS + OVER_MS })).toHaveLength(3);
    const later = { suspects: true, nowMs: NOW_MS + 2 * OVER_MS };
    expect(await claimAndLook(storage, { byKey: busy, ...later })).toEqual({
      tasks: [],
      later: [],
    });
    expect(await nextSuspect(storage, { byKey: busy, nowMs: later.nowMs })).toBe(
      Number.POSITIVE_INFINITY,
    );
    expect(await claimAndLook(storage, { byKey, ...later })).toMatchObject({
      tasks: [{ task: { taskId: "a0" } }],
      later: [],
    });
  });

  it("counts no start of a task that has not begun, from the next claim on", async (storage) => {
    await openLease(storage);
    await submitMany(storage, 6, "a");
    const byKey = { rate: RATE };
    const unbegun = { status: "queued", failed: false, failure: FAILURE, unbegun: true } as const;
    expect(taskIds(await claim(storage, { byKey, limit: 1 }))).toEqual(["a0"]);
    const at = (afterMs: number) => ({ byKey, nowMs: NOW_MS + afterMs });
    expect(taskIds(await claim(storage, at(10)))).toEqual(["a1", "a2"]);
    expect((await endAttempt(storage, attempt("a1"), unbegun))?.status).toBe("queued");
    // Said again, and of one that has ended: nothing changes.
    expect(await endAttempt(storage, attempt("a1"), unbegun)).toBeUndefined();
    await endAttempt(storage, attempt("a2"), success(1));
    expect(await endAttempt(storage, attempt("a2"), unbegun)).toBeUndefined();
    const again = await claimAndLook(storage, at(20));
    expect(taskIds(again.tasks)).toEqual(["a1"]);
    expect(again.later).toMatchObject([{ inMs: OVER_MS - 20 }]);
    // What has begun counts: that of the beginning, a2 and the second start of a1.
    expect(taskIds(await claim(storage, at(OVER_MS)))).toEqual(["a3"]);
    expect(taskIds(await claim(storage, at(OVER_MS + 10)))).toEqual(["a4"]);
    expect(taskIds(await claim(storage, at(OVER_MS + 19)))).toEqual([]);
    expect(taskIds(await claim(storage, at(OVER_MS + 20)))).toEqual(["a5"]);
  });

  it("counts as many starts of a moment as have begun, of tasks and of suspects", async (storage) => {
    await openLease(storage);
    await submitMany(storage, 6, "a");
    await submitMany(storage, 4, "b");
    const byKey = { rate: RATE };
    expect(await claim(storage, { byKey })).toHaveLength(6);
    const failed = { status: "failure", failure: FAILURE, unbegun: true } as const;
    const lost = { status: "worker_lost", failure: WORKER_LOST } as const;
    const back = { status: "queued", failed: false, failure: FAILURE, unbegun: true } as const;
    await endAttempt(storage, attempt("a0"), failed);
    await endAttempt(storage, attempt("a1"), lost);
    await endAttempt(storage, attempt("a2"), back);
    const suspects = { byKey, suspects: true };
    expect(taskIds(await claim(storage, suspects))).toEqual(["a1"]);
    await endAttempt(storage, attempt("a1", { attempt: 2 }), back);
    expect(taskIds(await claim(storage, suspects))).toEqual(["a1"]);
    // Of a, two have begun: a1 twice.
    expect(taskIds(await claim(storage, { byKey }))).toEqual(["a2"]);
    for (const taskId of ["b0", "b1", "b2"]) {
      await endAttempt(storage, attempt(taskId), back);
    }
    const named = { ...byKey, keys: ["b"] };
    expect(taskIds(await claim(storage, { byKey: named }))).toEqual(["b0", "b1", "b2"]);
    expect(await claim(storage, { byKey: named })).toEqual([]);
  });

  it("says that a suspect may start when its key has starts that did not begin", async (storage) => {
    await openLease(storage);
    await submitMany(storage, 5, "a");
    const byKey = { rate: RATE };
    const at = (afterMs: number) => ({ byKey, nowMs: NOW_MS + OVER_MS + afterMs });
    expect(await claim(storage, { byKey })).toHaveLength(3);
    const lost = { status: "worker_lost", failure: WORKER_LOST } as const;
    await endAttempt(storage, attempt("a1"), lost);
    expect(taskIds(await claim(storage, { ...at(0), suspects: true }))).toEqual(["a1"]);
    expect(taskIds(await claim(storage, at(0)))).toEqual(["a3", "a4"]);
    const unbegun = { status: "queued", failed: false, failure: FAILURE, unbegun: true } as const;
    await endAttempt(storage, attempt("a1", { attempt: 2 }), { ...unbegun, suspect: true });
    const busy = { rate: RATE, concurrency: 1 };
    expect(await nextSuspect(storage, { ...at(10), byKey: busy })).toBe(Number.POSITIVE_INFINITY);
    expect(await nextSuspect(storage, at(10))).toBe(0);
    expect(taskIds(await claim(storage, { ...at(10), suspects: true }))).toEqual(["a1"]);
    await endAttempt(storage, attempt("a1", { attempt: 3 }), lost);
    expect(await nextSuspect(storage, at(20))).toBe(OVER_MS - 20);
  });

  it("forgets that a start was none when no window can hold it", async (storage) => {
    await openLease(storage);
    await submitMany(storage, 1, "a");
    await claim(storage, { byKey: { rate: RATE } });
    const failed = { status: "failure", failure: FAILURE, unbegun: true } as const;
    await endAttempt(storage, attempt("a0"), failed);
    const prune = (nowMs: number) => storage.pruneFinished({ nowMs, limit: 10 });
    await storage.deleteTasks({ deploymentId: DEPLOYMENT, taskIds: ["a0"], nowMs: NOW_MS });
    expect(await prune(NOW_MS + OVER_MS - 1)).toBe(1);
    expect(await prune(NOW_MS + OVER_MS)).toBe(1);
    expect(await prune(NOW_MS + OVER_MS)).toBe(0);
  });

  it("holds to the rate and the number that may run, and says when only time is missing", async (storage) => {
    await openLease(storage);
    await submitMany(storage, 5, "a");
    const byKey = { rate: RATE, concurrency: 2 };
    expect(await claimAndLook(storage, { byKey })).toMatchObject({
      tasks: [{ task: { taskId: "a0" } }, { task: { taskId: "a1" } }],
      // What ends gives a place, and nobody knows when.
      later: [],
    });
    await endAttempt(storage, attempt("a0"), success(1));
    await endAttempt(storage, attempt("a1"), success(1));
    expect(await claimAndLook(storage, { byKey, nowMs: NOW_MS + 10 })).toMatchObject({
      tasks: [{ task: { taskId: "a2" } }],
      later: [{ inMs: OVER_MS - 10 }],
    });
  });

  it("holds to a rate that was lowered, and to one that was raised", async (storage) => {
    await openLease(storage);
    await submitMany(storage, 9, "a");
    expect(await claim(storage, { byKey: { rate: RATE } })).toHaveLength(3);
    const lower = { rate: { ...RATE, count: 1 } };
    expect((await claimAndLook(storage, { byKey: lower })).later).toMatchObject([
      { inMs: OVER_MS },
    ]);
    const higher = { rate: { ...RATE, count: 5 } };
    expect(await claim(storage, { byKey: higher })).toHaveLength(2);
    expect(await claim(storage, { byKey: higher })).toEqual([]);
  });

  it("never starts more of a key than its rate, however many claim at once", async (storage) => {
    const leases = Array.from({ length: 8 }, (_, number) => `lease-${number}`);
    await Promise.all(leases.map((leaseId) => openLease(storage, leaseId)));
    await submitMany(storage, 20, "a");
    await submitMany(storage, 20, "b");
    const claimed = await Promise.all(
      leases.map((leaseId) => claim(storage, { leaseId, limit: 5, byKey: { rate: RATE } })),
    );
    const keys = claimed.flat().map(({ task }) => task.key);
    expect(keys.sort()).toEqual(["a", "a", "a", "b", "b", "b"]);
  });

  it("waits for a period at most when the clock was set back", async (storage) => {
    await openLease(storage);
    await submitMany(storage, 6, "a", { createdAtMs: 0, runAtMs: 0 });
    const byKey = { rate: RATE };
    await claim(storage, { byKey });
    const backMs = NOW_MS - 86_400_000;
    const set = await claimAndLook(storage, { byKey, nowMs: backMs });
    expect(set).toMatchObject({ tasks: [], later: [{ inMs: OVER_MS }] });
    expect(await claim(storage, { byKey, nowMs: backMs + OVER_MS })).toHaveLength(3);
  });

  it("forgets starts when no window can hold them, and the turns of keys that wait no more", async (storage) => {
    await openLease(storage);
    await submitMany(storage, 3, "a");
    await submitMany(storage, 2, "b");
    const byKey = { rate: RATE };
    expect(taskIds(await claim(storage, { byKey, limit: 1 }))).toEqual(["a0"]);
    const prune = (nowMs: number) => storage.pruneFinished({ nowMs, limit: 10 });
    // The next one of b is first while tasks wait.
    expect(await prune(NOW_MS + OVER_MS - 1)).toBe(0);
    expect(taskIds(await claim(storage, { byKey, limit: 1 }))).toEqual(["b0"]);
    expect(taskIds(await claim(storage, { byKey }))).toEqual(["a1", "b1", "a2"]);
    expect(await prune(NOW_MS + OVER_MS)).toBe(5);
    expect(await prune(NOW_MS + OVER_MS)).toBe(0);
    await submit(storage, newTask("a9", { key: "a" }), newTask("c0", { key: "c" }));
    expect(taskIds(await claim(storage, { byKey, limit: 1 }))).toEqual(["a9"]);
  });

  it("finds the keys whose start has left the window, without looking at others", async (storage) => {
    await openLease(storage);
    const rate = { count: 1, periodMs: RATE.periodMs };
    await submitMany(storage, 2, "a");
    await submitMany(storage, 2, "b");
    await submitMany(storage, 1, "c");
    await claim(storage, { byKey: { rate, keys: ["a"] } });
    await claim(storage, { byKey: { rate, keys: ["b"] }, nowMs: NOW_MS + 10 });
    const at = async (afterMs: number, limit = 10) => {
      const byKey = { rate, keys: [] };
      const found = await claimAndLook(storage, { byKey, limit, nowMs: NOW_MS + afterMs });
      return [taskIds(found.tasks), found.later.map(({ inMs }) => inMs)];
    };
    expect(await at(20)).toEqual([[], [OVER_MS - 20]]);
    // One that finds no slot stays to be found.
    expect(await at(OVER_MS + 10, 1)).toEqual([["a1"], []]);
    expect(await at(OVER_MS + 10, 1)).toEqual([["b1"], []]);
    // Both have none left, and wait for nothing.
    expect(await at(OVER_MS + 11)).toEqual([[], [OVER_MS - 1]]);
    expect(await at(2 * OVER_MS + 10)).toEqual([[], []]);
    expect(taskIds(await claim(storage, { byKey: { rate } }))).toEqual(["c0"]);
  });

  it("starts tasks of keys that are named, and of those whose start has left the window, by turns", async (storage) => {
    await openLease(storage);
    const rate = { count: 1, periodMs: RATE.periodMs };
    const over = ["a", "b", "c"];
    for (const of of [...over, "x", "y", "z"]) {
      await submitMany(storage, 2, of);
    }
    await claim(storage, { byKey: { rate, keys: over } });
    const started: string[] = [];
    for (const [afterMs, keys] of [
      [10, ["x", "y"]],
      [11, ["y", "z"]],
    ] as const) {
      const nowMs = NOW_MS + OVER_MS + afterMs;
      const [claimed] = await claim(storage, { byKey: { rate, keys }, limit: 1, nowMs });
      started.push(claimed?.task.key ?? "");
    }
    expect(started.filter((of) => over.includes(of))).toEqual(["a"]);
    expect(started).toHaveLength(2);
  });

  it("says when the first suspect may start, of those that wait for a place and for their rate", async (storage) => {
    await openLease(storage);
    const byKey = { rate: RATE, concurrency: 1 };
    const lost = { status: "worker_lost", failure: WORKER_LOST } as const;
    await submitMany(storage, 2, "b");
    await claim(storage, { byKey, limit: 1 });
    await endAttempt(storage, attempt("b0"), lost);
    expect(taskIds(await claim(storage, { byKey, limit: 1 }))).toEqual(["b1"]);
    const limited = { ...byKey, rate: { count: 1, periodMs: RATE.periodMs } };
    await submitMany(storage, 1, "a");
    await claim(storage, { byKey: limited });
    await endAttempt(storage, attempt("a0"), lost);
    const at = { nowMs: NOW_MS + 10 };
    expect(await nextSuspect(storage, { byKey: limited, ...at })).toBe(OVER_MS - 10);
    expect(await nextSuspect(storage, { byKey, ...at })).toBe(0);
    expect(await nextSuspect(storage, { byKey: { concurrency: 1 }, ...at })).toBe(0);
    expect(taskIds(await claim(storage, { byKey, suspects: true, ...at }))).toEqual(["a0"]);
    expect(await nextSuspect(storage, { byKey, ...at })).toBe(Number.POSITIVE_INFINITY);
    await endAttempt(storage, attempt("b1"), success(1));
    expect(await nextSuspect(storage, { byKey, ...at })).toBe(0);
    expect(taskIds(await claim(storage, { byKey, suspects: true, ...at }))).toEqual(["b0"]);
    expect(await nextSuspect(storage, { byKey, ...at })).toBeUndefined();
  });

  it("keeps starts that no window holds while tasks of their keys wait to be found by them", async (storage) => {
    await openLease(storage);
    await submitMany(storage, 4, "a");
    const byKey = { rate: RATE };
    await claim(storage, { byKey });
    expect(await storage.pruneFinished({ nowMs: NOW_MS + OVER_MS, limit: 10 })).toBe(0);
    const found = await claim(storage, { byKey: { ...byKey, keys: [] }, nowMs: NOW_MS + OVER_MS });
    expect(taskIds(found)).toEqual(["a3"]);
    expect(await storage.pruneFinished({ nowMs: NOW_MS + 2 * OVER_MS, limit: 10 })).toBe(1);
  });

  it("passes a bounded number of keys that have none to start, and goes on behind them", async (storage) => {
    await openLease(storage);
    const overdue = Array.from({ length: 1_001 }, (_, number) =>
      newTask(`a${number}`, { key: `a${number}`, startByMs: NOW_MS + 1, queueLimit: 2_000 }),
    );
    await submit(storage, ...overdue);
    await submit(storage, newTask("b", { key: "b", queueLimit: 2_000 }));
    const late = { byKey: {}, nowMs: NOW_MS + 5, limit: 1 };
    const first = await claimAndLook(storage, late);
    expect(first).toEqual({ tasks: [], later: [{ endpoint: "work", cut: "on" }] });
    expect(taskIds(await claim(storage, late))).toEqual(["b"]);
  });
}
