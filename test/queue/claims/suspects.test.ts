import { expect, it } from "vitest";
import type { Slot } from "../../../src/pool/pool.ts";
import type { EndpointManifest } from "../../../src/protocol/manifest.ts";
import { ClaimRecovery } from "../../../src/queue/claims/recovery.ts";
import { Suspects } from "../../../src/queue/claims/suspects.ts";
import { WORKER_LOST } from "../../../src/tasks/failure.ts";
import {
  attempt,
  claim,
  DEPLOYMENT,
  ENDPOINT,
  endAttempt,
  LEASE,
  NOW_MS,
  startTask,
} from "../../storage/fixtures.ts";
import { openSqlite } from "../../storage/sqlite/databases.ts";

const LOG = { debug() {}, info() {}, warn() {}, error() {} };
const ENDPOINT_MANIFEST = { name: ENDPOINT } as EndpointManifest;

async function begin(taskIds: readonly string[]) {
  const storage = await openSqlite(":memory:");
  for (const taskId of taskIds) {
    await startTask(storage, taskId);
  }
  for (const taskId of taskIds) {
    const end = { status: "queued", failed: false, failure: WORKER_LOST, suspect: true } as const;
    await endAttempt(storage, attempt(taskId), end);
  }
  const started: string[] = [];
  /** A pool of one worker: how often it was reserved, and whether a suspect has it. */
  const worker = { reserved: 0, held: false };
  const suspects: Suspects = new Suspects({
    storage,
    deploymentId: DEPLOYMENT,
    log: LOG,
    now: () => NOW_MS,
    recovery: new ClaimRecovery({
      storage,
      attempts: { has: () => true },
      completer: { giveBack() {}, isUnderWay: () => false },
      log: LOG,
    }),
    backlog: { isEmpty: true, find: () => ENDPOINT_MANIFEST, byKey: () => undefined },
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
  return { storage, suspects, started, worker, [Symbol.asyncDispose]: dispose };
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
