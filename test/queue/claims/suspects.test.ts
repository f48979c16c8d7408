import { expect, it, vi } from "vitest";
import type { Slot } from "../../../src/pool/pool.ts";
import type { EndpointManifest } from "../../../src/protocol/manifest.ts";
import { ClaimRecovery } from "../../../src/queue/claims/recovery.ts";
import { Suspects } from "../../../src/queue/claims/suspects.ts";
import type { ClaimByKey } from "../../../src/storage/claims-by-key.ts";
import type { Claimed } from "../../../src/storage/storage.ts";
import { WORKER_LOST } from "../../../src/tasks/failure.ts";
import {
  attempt,
  claim,
  DEPLOYMENT,
  ENDPOINT,
  endAttempt,
  LEASE,
  NOW_MS,
  newTask,
  startTask,
  submit,
} from "../../storage/fixtures.ts";
import { openSqlite } from "../../storage/sqlite/databases.ts";

const LOG = { debug() {}, info() {}, warn() {}, error() {} };
const ENDPOINT_MANIFEST = { name: ENDPOINT } as EndpointManifest;

async function begin(taskIds: readonly string[], byKey?: ClaimByKey) {
  let nowMs = NOW_MS;
  /** Called as the next claims begin. */
  const claiming: (() => void)[] = [];
  const promoted: NonNullable<Claimed["due"]>[number][] = [];
  const storage = await openSqlite(":memory:");
  for (const taskId of taskIds) {
    await startTask(storage, taskId, { key: "a" });
  }
  for (const taskId of taskIds) {
    const end = { status: "queued", failed: false, failure: WORKER_LOST, suspect: true } as const;
    await endAttempt(storage, attempt(taskId), end);
  }
  const started: string[] = [];
  /** How often the storage was asked when the next one may start. */
  let asked = 0;
  /** A pool of one worker: how often it was reserved, and whether a suspect has it. */
  const worker = { reserved: 0, held: false };
  const suspects: Suspects = new Suspects({
    storage: {
      claimTasks: (parameters) => storage.claimTasks(parameters),
      nextSuspect: async (parameters) => {
        const inMs = await storage.nextSuspect(parameters);
        asked += 1;
        return inMs;
      },
    },
    deploymentId: DEPLOYMENT,
    log: LOG,
    now: () => nowMs,
    recovery: new ClaimRecovery({
      storage,
      attempts: { has: () => true },
      completer: { giveBack() {}, isUnderWay: () => false },
      log: LOG,
    }),
    backlog: {
      isEmpty: true,
      find: () => ENDPOINT_MANIFEST,
      byKey: () => {
        claiming.shift()?.();
        return byKey;
      },
      promoted: (due) => void promoted.push(...due),
    },
    pool: {
      reserveAlone: () => {
        if (worker.held) {
          return undefined;
        }
        worker.reserved += 1;
        worker.held = true;
        const release = (): void => {
          worker.held = false;
        };
        return { workerId: LEASE, release } as unknown as Slot;
      },
      suspectsSettled() {},
    },
    start: ({ task }, slot) => {
      started.push(task.taskId);
      setImmediate(() => {
        slot.release();
        suspects.wake();
      });
    },
  });
  const dispose = async () => {
    await suspects[Symbol.asyncDispose]();
    await storage[Symbol.asyncDispose]();
  };
  const pass = (ms: number) => {
    nowMs += ms;
    vi.advanceTimersByTime(ms);
  };
  return {
    storage,
    suspects,
    started,
    promoted,
    claiming,
    worker,
    pass,
    get asked() {
      return asked;
    },
    [Symbol.asyncDispose]: dispose,
  };
}

async function survey({ storage, suspects }: Awaited<ReturnType<typeof begin>>) {
  const found = await storage.survey({ nowMs: NOW_MS, deploymentIds: [DEPLOYMENT] });
  for (const { endpoint, count } of found.suspects) {
    suspects.hint(endpoint, count);
  }
}

it("runs all that one survey has found, each when the one before has ended", async () => {
  await using begun = await begin(["a", "b", "c", "d"]);
  await survey(begun);
  await expect.poll(() => begun.started).toEqual(["a", "b", "c", "d"]);
});

it("asks for no worker when the last that it knows of was claimed", async () => {
  await using begun = await begin(["a", "b"]);
  begun.suspects.came(ENDPOINT);
  begun.suspects.came(ENDPOINT);
  await expect.poll(() => begun.started).toEqual(["a", "b"]);
  begun.suspects.wake();
  expect(begun.worker.reserved).toBe(2);
});

it("forgets what a survey has found when another node was first", async () => {
  await using begun = await begin(["a", "b", "c"]);
  const claimed = await claim(begun.storage, { suspects: true, limit: 2 });
  expect(claimed).toHaveLength(2);
  begun.suspects.hint(ENDPOINT, 3);
  await expect.poll(() => begun.worker).toEqual({ reserved: 2, held: false });
  expect(begun.started).toEqual(["c"]);
});

it("asks for no worker while all rest for the rates of their keys, and for one when the first may start", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    await using begun = await begin(["a", "b"], { rate: { count: 1, periodMs: 60_000 } });
    const { suspects, started, worker, pass } = begun;
    await survey(begun);
    await expect.poll(() => begun.asked).toBe(2);
    expect(started).toEqual(["a"]);
    for (let round = 0; round < 3; round++) {
      expect(suspects.hint(ENDPOINT, 1)).toBe(false);
      await expect.poll(() => begun.asked).toBe(3 + round);
      pass(10_000);
    }
    expect(worker).toEqual({ reserved: 1, held: false });
    pass(30_001);
    await expect.poll(() => started).toEqual(["a", "b"]);
    expect(worker.reserved).toBe(2);
  } finally {
    vi.useRealTimers();
  }
});

it("asks for no worker while as many of their key run as may, and for one when one has ended", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    await using begun = await begin(["a", "b"], { concurrency: 1 });
    const { storage, suspects, started, worker, pass } = begun;
    const running = await startTask(storage, "c", { key: "a" });
    await survey(begun);
    await expect.poll(() => begun.asked).toBe(1);
    // Others of the endpoint end meanwhile: it is asked once for all of them.
    for (let round = 0; round < 3; round++) {
      suspects.freed(ENDPOINT);
    }
    pass(500);
    await expect.poll(() => begun.asked).toBe(2);
    expect(suspects.hint(ENDPOINT, 2)).toBe(false);
    await expect.poll(() => begun.asked).toBe(3);
    expect(worker).toEqual({ reserved: 0, held: false });
    await endAttempt(storage, running, { status: "cancelled" });
    suspects.freed(ENDPOINT);
    pass(500);
    await expect.poll(() => started).toEqual(["a"]);
    await endAttempt(storage, attempt("a", { attempt: 2 }), { status: "cancelled" });
    suspects.freed(ENDPOINT);
    pass(500);
    await expect.poll(() => started).toEqual(["a", "b"]);
    expect(worker.reserved).toBe(2);
  } finally {
    vi.useRealTimers();
  }
});

it("forgets without a worker what another node has claimed, where keys have limits", async () => {
  await using begun = await begin(["a"], { concurrency: 1 });
  expect(await claim(begun.storage, { suspects: true })).toHaveLength(1);
  expect(begun.suspects.hint(ENDPOINT, 1)).toBe(true);
  await expect.poll(() => begun.asked).toBe(1);
  begun.suspects.wake();
  expect(begun).toMatchObject({ asked: 1, started: [], worker: { reserved: 0 } });
});

it("tells of the keys of delayed tasks that it has found due", async () => {
  await using begun = await begin(["a"], { concurrency: 1 });
  const { storage, suspects, started, promoted } = begun;
  await submit(storage, newTask("delayed", { key: "b", createdAtMs: NOW_MS - 10 }));
  suspects.came(ENDPOINT);
  await expect.poll(() => started).toEqual(["a"]);
  expect(promoted).toEqual([{ endpoint: ENDPOINT, keys: ["b"] }]);
});

it("looks again for a suspect that has come while it learned that none may start", async () => {
  await using begun = await begin(["a", "b"], { rate: { count: 1, periodMs: 60_000 } });
  const { suspects, claiming } = begun;
  await survey(begun);
  await expect.poll(() => begun.asked).toBe(2);
  claiming.push(() => suspects.came(ENDPOINT));
  suspects.came(ENDPOINT);
  await expect.poll(() => begun.asked).toBe(4);
});

it("looks again for a suspect that has come while a claim found none", async () => {
  await using begun = await begin(["a"]);
  const { suspects, claiming, worker } = begun;
  await survey(begun);
  await expect.poll(() => worker).toEqual({ reserved: 1, held: false });
  claiming.push(
    () => {},
    () => suspects.came(ENDPOINT),
  );
  suspects.came(ENDPOINT);
  await expect.poll(() => worker).toEqual({ reserved: 3, held: false });
});
