import { expect } from "vitest";
import type { Storage } from "../../../src/storage/storage.ts";
import type { Contract } from "../contract.ts";
import {
  claim,
  counts,
  DEPLOYMENT,
  endAttempt,
  key,
  LEASE,
  NOW_MS,
  newTask,
  openLease,
  success,
} from "../fixtures.ts";

/** Marsaglia's xorshift, 32 bits (Journal of Statistical Software 8(14), 2003): always the same walk. */
function randomSource(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

async function countByReading(storage: Storage, ids: readonly string[]) {
  const found = await Promise.all(ids.map((taskId) => storage.getTask(key(taskId))));
  return ["a", "b"].flatMap((endpoint) => {
    const number = (status: string) =>
      found.filter((task) => task?.endpoint === endpoint && task.status === status).length;
    const [queued, running] = [number("queued"), number("running")];
    return queued + running > 0 ? [{ endpoint, queued, running }] : [];
  });
}

export function countsContract({ it }: Contract): void {
  it("counts nothing where there is nothing", async (storage) => {
    expect(await storage.countTasks({ deploymentId: "unknown" })).toEqual([]);
  });

  it("counts the tasks of each endpoint, delayed ones as queued", async (storage) => {
    await openLease(storage);
    await storage.submitTasks({
      tasks: [
        newTask("1", { endpoint: "b" }),
        newTask("2", { endpoint: "b", runAtMs: NOW_MS + 1 }),
        newTask("3", { endpoint: "a", leaseId: LEASE }),
        newTask("4", { endpoint: "a", deploymentId: "deployment-2" }),
      ],
    });
    expect(await counts(storage)).toEqual([
      { endpoint: "a", queued: 0, running: 1 },
      { endpoint: "b", queued: 2, running: 0 },
    ]);
  });

  it("counts what there is, whatever happened before", async (storage) => {
    const random = randomSource(20_250_615);
    const ids: string[] = [];
    for (let step = 0; step < 300; step++) {
      const endpoint = random(2) ? "a" : "b";
      const nowMs = NOW_MS + step;
      await [
        () => openLease(storage, LEASE, nowMs),
        () => {
          ids.push(`t${step}`);
          const runAtMs = nowMs + random(2) * 10;
          const task = newTask(`t${step}`, { endpoint, createdAtMs: nowMs, runAtMs });
          const queueLimit = random(6);
          const lease = random(2) ? { leaseId: LEASE } : {};
          return storage.submitTasks({ tasks: [{ ...task, queueLimit, ...lease }] });
        },
        () => claim(storage, { endpoint, limit: random(3), nowMs }),
        async () => {
          const task = await storage.getTask(key(ids[random(ids.length || 1)] ?? "none"));
          const ended = { ...key(task?.taskId ?? "none"), leaseId: LEASE };
          const ends = [
            success(1),
            { status: "cancelled" },
            { status: "worker_lost" },
            { status: "queued", runAtMs: nowMs + random(2) * 5, failed: true },
          ] as const;
          const end = ends[random(ends.length)] ?? ends[0];
          return endAttempt(storage, { ...ended, attempt: task?.attempt ?? 0 }, end, nowMs);
        },
        () => storage.cancelTask({ ...key(ids[random(ids.length || 1)] ?? "none"), nowMs }),
        () => (random(4) ? undefined : storage.rescueExpired({ nowMs, all: true })),
        () => storage.pruneFinished({ nowMs: NOW_MS * 2, limit: random(3) }),
      ][random(7)]?.();
    }
    expect(await counts(storage, DEPLOYMENT)).toEqual(await countByReading(storage, ids));
  });
}
