import { expect } from "vitest";
import type { NewTask, Storage } from "../../../src/storage/storage.ts";
import { WORKER_LOST } from "../../../src/tasks/failure.ts";
import type { Contract } from "../contract.ts";
import {
  attempt,
  type ClaimOptions,
  claim,
  claimAndLook,
  endAttempt,
  FAILURE,
  LEASE,
  NOW_MS,
  newTask,
  openLease,
  submit,
  success,
} from "../fixtures.ts";

const DAY_MS = 86_400_000;

/** Tasks of keys that run for as long as their key says, one after the other or side by side. */
function timed(storage: Storage) {
  let nowMs = NOW_MS;
  const submitted = new Map<string, number>();
  const submitMany = (count: number, key: string) => {
    const before = submitted.get(key) ?? 0;
    submitted.set(key, before + count);
    const ids = Array.from({ length: count }, (_, at) => String(before + at).padStart(3, "0"));
    return submit(storage, ...ids.map((id) => newTask(`${key}${id}`, { key })));
  };
  /** The keys of the tasks that are claimed. */
  const claimed = async (limit: number, options: ClaimOptions = {}) => {
    const byKey = { fair: "seconds", ...options.byKey } as const;
    const tasks = await claim(storage, { nowMs, limit, ...options, byKey });
    return tasks.map(({ task }) => task);
  };
  const keys = async (limit: number, options?: ClaimOptions) =>
    (await claimed(limit, options)).map(({ key }) => key ?? "").join("");
  /** Runs one task after the other, in one slot, and tells their keys. */
  const run = async (count: number, runMs: Record<string, number>) => {
    let order = "";
    for (let each = 0; each < count; each++) {
      const [task] = await claimed(1);
      nowMs += runMs[task?.key ?? ""] ?? 0;
      order += task?.key ?? "-";
      if (task) {
        await endAttempt(storage, attempt(task.taskId), success(1), nowMs);
      }
    }
    return order;
  };
  const end = (taskId: string, afterMs = 0) => {
    nowMs += afterMs;
    return endAttempt(storage, attempt(taskId), success(1), nowMs);
  };
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { submitMany, claimed, keys, run, end, pass, now: () => nowMs };
}

export function timesContract({ it }: Pick<Contract, "it">): void {
  it("starts the next task of the key that has run for the least time", async (storage) => {
    await openLease(storage);
    const { submitMany, run } = timed(storage);
    await submitMany(30, "a");
    await submitMany(30, "b");
    expect(await run(16, { a: 30_000, b: 10_000 })).toBe("abbbabbbabbbabbb");
  });

  it("counts tasks that run so far, and what they usually take of those that have just started", async (storage) => {
    await openLease(storage);
    const { submitMany, keys, run, pass, end } = timed(storage);
    await submitMany(30, "a");
    await submitMany(30, "b");
    // Nothing is known of either.
    expect(await keys(4)).toBe("abab");
    await end("b000", 1_000);
    await end("b001", 1_000);
    // Two tasks of a have had 4 s so far and those of b 3 s, one and a half each.
    expect(await keys(3)).toBe("bab");
    pass(60_000);
    expect(await keys(3)).toBe("bbb");
    await end("a000");
    await end("a001");
    await end("a002");
    // Those of a take a minute, and those of b a second and a half.
    expect(await keys(8)).toBe("bbbbbbbb");
    expect(await run(1, {})).toBe("b");
  });

  it("lets a key that is new begin where the least served is that waits", async (storage) => {
    await openLease(storage);
    const { submitMany, run } = timed(storage);
    await submitMany(40, "a");
    await submitMany(40, "b");
    expect(await run(10, { a: 10_000, b: 10_000 })).toBe("ababababab");
    await submitMany(40, "c");
    // It waits for nobody, and has no more than the others from then on.
    expect(await run(9, { a: 10_000, b: 10_000, c: 10_000 })).toBe("cabcabcab");
  });

  it("saves nothing for a key that was away", async (storage) => {
    await openLease(storage);
    const { submitMany, run } = timed(storage);
    await submitMany(1, "a");
    await submitMany(40, "b");
    expect(await run(8, { a: 1_000, b: 10_000 })).toBe("abbbbbbb");
    await submitMany(40, "a");
    expect(await run(5, { a: 10_000, b: 10_000 })).toBe("ababa");
  });

  it("has no key wait for longer than until the others have had as much", async (storage) => {
    await openLease(storage);
    const { submitMany, run } = timed(storage);
    await submitMany(3, "a");
    await submitMany(40, "b");
    expect(await run(12, { a: 50_000, b: 10_000 })).toBe("abbbbbabbbbb");
  });

  it("counts attempts however they end", async (storage) => {
    await openLease(storage);
    const { submitMany, claimed, keys, now, pass } = timed(storage);
    await submitMany(9, "a");
    await submitMany(9, "b");
    const lost = { status: "worker_lost", failure: WORKER_LOST } as const;
    const again = { status: "queued", failed: true, runAtMs: NOW_MS, failure: FAILURE } as const;
    const failed = { status: "failure", failure: FAILURE } as const;
    let b = "";
    for (const end of [lost, again, failed, { status: "cancelled" } as const]) {
      const [task] = await claimed(1);
      pass(10_000);
      await endAttempt(
        storage,
        attempt(task?.taskId ?? "", { attempt: task?.attempt ?? 0 }),
        end,
        now(),
      );
      b += task?.key;
    }
    expect(b).toBe("abab");
    const [one] = await claimed(1);
    expect(one?.key).toBe("a");
    pass(30_000);
    await storage.closeLease({ leaseId: LEASE, nowMs: now() });
    await openLease(storage, LEASE, now());
    expect(await keys(1)).toBe("b");
  });

  it("counts nothing where the endpoint goes by seconds no more", async (storage) => {
    await openLease(storage);
    const { submitMany, claimed, keys, now, pass, end } = timed(storage);
    await submitMany(2, "a");
    await submitMany(2, "b");
    const [task] = await claimed(1);
    expect(task?.taskId).toBe("a000");
    pass(10_000);
    const ended = { attempt: attempt("a000"), end: success(1), task, isTimed: false };
    await storage.endAttempts({ nowMs: now(), ends: [ended] });
    expect(await keys(1)).toBe("b");
    await end("b000", 5_000);
    expect(await keys(1)).toBe("a");
  });

  it("counts suspects, which start apart", async (storage) => {
    await openLease(storage);
    const { submitMany, claimed, keys, now, pass } = timed(storage);
    await submitMany(2, "a");
    await submitMany(2, "b");
    const [first] = await claimed(1);
    const lost = { status: "worker_lost", failure: WORKER_LOST } as const;
    await endAttempt(storage, attempt(first?.taskId ?? ""), lost, now());
    expect(await keys(9, { suspects: true })).toBe("a");
    pass(20_000);
    await endAttempt(storage, attempt("a000", { attempt: 2 }), success(1), now());
    expect(await keys(1)).toBe("b");
    pass(10_000);
    await endAttempt(storage, attempt("b000"), success(1), now());
    expect(await keys(1)).toBe("b");
  });

  it("deals what several claims of the endpoint ask for of the same tasks", async (storage) => {
    await openLease(storage);
    await openLease(storage, "other");
    const { submitMany } = timed(storage);
    await submitMany(3, "a");
    await submitMany(3, "b");
    const byKey = { fair: "seconds" } as const;
    const claims = ["other", "closed", LEASE].map((leaseId) => ({
      ...{ endpoint: "work", leaseId, limit: 2, byKey },
    }));
    const { tasks } = await storage.claimTasks({
      deploymentId: "deployment-1",
      nowMs: NOW_MS,
      claims,
    });
    expect(tasks.map(({ task, leaseId }) => `${leaseId} ${task.taskId}`)).toEqual([
      ...["other a000", "other b000", `${LEASE} a001`, `${LEASE} b001`],
    ]);
  });

  it("holds to limits of keys as well, and says when only time is missing", async (storage) => {
    await openLease(storage);
    const { submitMany } = timed(storage);
    await submitMany(5, "a");
    await submitMany(5, "b");
    const rate = { count: 3, periodMs: 60_000 };
    const byKey = { fair: "seconds", concurrency: 4, rate } as const;
    const { tasks, later } = await claimAndLook(storage, { byKey });
    expect(tasks.map(({ task }) => task.taskId)).toEqual([
      ...["a000", "b000", "a001", "b001", "a002", "b002"],
    ]);
    expect(later).toEqual([{ endpoint: "work", inMs: 60_001 }]);
    const leases = Array.from({ length: 6 }, (_, number) => `lease-${number}`);
    await Promise.all(leases.map((leaseId) => openLease(storage, leaseId)));
    const late = { nowMs: NOW_MS + 60_001, byKey, limit: 5 };
    const all = await Promise.all(leases.map((leaseId) => claim(storage, { ...late, leaseId })));
    expect(
      all
        .flat()
        .map(({ task }) => task.key)
        .sort(),
    ).toEqual(["a", "b"]);
  });

  it("never gives a task twice, however many claim at once", async (storage) => {
    const leases = Array.from({ length: 8 }, (_, number) => `lease-${number}`);
    await Promise.all(leases.map((leaseId) => openLease(storage, leaseId)));
    const { submitMany } = timed(storage);
    await submitMany(20, "a");
    await submitMany(10, "b");
    const byKey = { fair: "seconds" } as const;
    const all = await Promise.all(
      leases.map((leaseId) => claim(storage, { leaseId, limit: 5, byKey })),
    );
    expect(new Set(all.flat().map(({ task }) => task.taskId)).size).toBe(30);
  });

  it("compares a bounded number of keys, and goes on with those after them", async (storage) => {
    await openLease(storage);
    const many = Array.from({ length: 201 }, (_, number) => {
      const key = `a${String(number).padStart(3, "0")}`;
      return newTask(key, { key, startByMs: number < 200 ? NOW_MS + 1 : undefined } as NewTask);
    });
    await submit(storage, ...many);
    const late = { byKey: { fair: "seconds" } as const, nowMs: NOW_MS + 5, limit: 1 };
    const first = await claimAndLook(storage, late);
    expect(first).toEqual({ tasks: [], later: [{ endpoint: "work", cut: "on" }] });
    expect((await claim(storage, late)).map(({ task }) => task.taskId)).toEqual(["a200"]);
  });

  it("compares the keys that are named, and those whose start has left the window", async (storage) => {
    await openLease(storage);
    const { submitMany, run, pass, now } = timed(storage);
    for (const key of ["a", "b", "c"]) {
      await submitMany(3, key);
    }
    const rate = { count: 1, periodMs: 60_000 };
    expect(await run(2, { a: 2_000, b: 1_000 })).toBe("ab");
    const byKey = { fair: "seconds", rate } as const;
    const asked = async (keys: readonly string[], limit = 5) => {
      const found = await claimAndLook(storage, { byKey: { ...byKey, keys }, limit, nowMs: now() });
      return [found.tasks.map(({ task }) => task.key), found.later.map(({ inMs }) => inMs)];
    };
    expect(await asked(["a", "b"], 1)).toEqual([["b"], []]);
    expect(await asked(["a", "b"])).toEqual([["a"], [60_001]]);
    pass(60_001);
    expect(await asked([], 1)).toEqual([["b"], []]);
    expect(await asked([])).toEqual([["a"], [60_001]]);
  });

  it("forgets what a key has had a day after its last task", async (storage) => {
    await openLease(storage);
    const { submitMany, run, pass, now, keys } = timed(storage);
    await submitMany(1, "a");
    await submitMany(1, "b");
    expect(await run(2, { a: 500_000, b: 10_000 })).toBe("ab");
    await submitMany(9, "a");
    await submitMany(9, "b");
    expect(await run(1, { b: 10_000 })).toBe("b");
    pass(DAY_MS);
    const pruned = await storage.pruneFinished({ nowMs: now(), limit: 100 });
    expect(pruned).toBeGreaterThan(0);
    expect(await keys(2)).toBe("ab");
  });
}
