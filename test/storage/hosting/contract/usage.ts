import { expect } from "vitest";
import { KEPT_DAYS, startOfDay } from "../../../../src/storage/days.ts";
import type { UsageQuery } from "../../../../src/storage/hosting/usage.ts";
import type { NewTask } from "../../../../src/storage/storage.ts";
import { WORKER_LOST } from "../../../../src/tasks/failure.ts";
import {
  attempt,
  claim,
  FAILURE,
  json,
  newTask,
  openLease,
  startTask,
  submit,
  success,
} from "../../fixtures.ts";
import type { It } from "../contract.ts";
import type { HostingPlatform } from "../fixtures.ts";

const DAY = 20_000;
/** Ten seconds before a day ends. */
const NOW_MS = startOfDay(DAY + 1) - 10_000;

export function usageContract(it: It): void {
  it("counts a task with its submit, and what an attempt used with its end", async (platform) => {
    await deployTwo(platform);
    const { storage } = platform;
    const started = await startTask(storage, "a", task("one"));
    await end(platform, started, NOW_MS + 1_500, { gpuMs: 750, units: { tokens: 3, pages: 0.5 } });
    const payload = json({ taskId: "a" });
    expect(await sums(platform, ["day", "deployment", "endpoint", "token"])).toEqual([
      {
        ...{ day: DAY, deployment: "one", endpoint: "work" },
        token: { id: "token-1", name: "", owner: "organization" },
        ...{ calls: 0, tasks: 1, runMs: 1_500, gpuMs: 750 },
        ...{ bytesIn: payload.json.length, bytesOut: 2, units: { tokens: 3, pages: 0.5 } },
      },
    ]);
  });

  it("adds up what several attempts, tasks and days used", async (platform) => {
    await deployTwo(platform);
    const { storage } = platform;
    const again = { status: "queued", failed: true, failure: FAILURE } as const;
    const first = await startTask(storage, "a", task("one"));
    await end(platform, first, NOW_MS + 1_000, { gpuMs: 0, units: { tokens: 1 } }, again);
    await storage.claimTasks({
      ...{ deploymentId: "one-id", nowMs: NOW_MS + 2_000 },
      claims: [{ endpoint: "work", leaseId: "lease-1", limit: 1 }],
    });
    const second = { ...first, attempt: 2 };
    await end(platform, second, NOW_MS + 12_000, { gpuMs: 0, units: { tokens: 5 } });
    const other = await startTask(storage, "b", task("two", { tokenId: undefined }));
    await end(platform, other, NOW_MS + 4_000, { gpuMs: 0 });
    const byDay = await sums(platform, ["day"]);
    expect(byDay).toMatchObject([
      { day: DAY, tasks: 2, runMs: 5_000, units: { tokens: 1 } },
      { day: DAY + 1, tasks: 0, runMs: 10_000, units: { tokens: 5 } },
    ]);
    expect(await sums(platform, ["deployment", "token"])).toMatchObject([
      { deployment: "one", token: { id: "token-1" }, runMs: 11_000, units: { tokens: 6 } },
      { deployment: "two", token: { id: "", name: "" }, runMs: 4_000, units: {} },
    ]);
    expect(await sums(platform, [])).toMatchObject([{ tasks: 2, runMs: 15_000 }]);
  });

  for (const [how, byKey] of [
    ["in the order of the queue", undefined],
    ["by its key", { concurrency: 1 }],
  ] as const) {
    it(`counts what was claimed ${how} for the token of its submit, as a suspect too`, async (platform) => {
      await deployTwo(platform);
      const { storage } = platform;
      await openLease(storage);
      await submit(storage, newTask("a", task("one", { key: "ada" })));
      const asked = { deploymentId: "one-id", nowMs: NOW_MS, byKey };
      expect(await claim(storage, asked)).toHaveLength(1);
      const lost = { status: "worker_lost", failure: WORKER_LOST } as const;
      const first = attempt("a", { deploymentId: "one-id" });
      await end(platform, first, NOW_MS + 1_000, { gpuMs: 0 }, lost);
      expect(await claim(storage, { ...asked, suspects: true })).toHaveLength(1);
      await end(platform, { ...first, attempt: 2 }, NOW_MS + 4_000, { gpuMs: 0 });
      expect(await sums(platform, ["token"])).toMatchObject([
        { token: { id: "token-1" }, tasks: 1, runMs: 5_000 },
      ]);
    });
  }

  it("counts nothing for a stale end, a repeated one, or an attempt that did not run", async (platform) => {
    await deployTwo(platform);
    const { storage } = platform;
    const started = await startTask(storage, "a", task("one"));
    const used = { gpuMs: 0, units: { tokens: 1 } };
    await end(platform, { ...started, attempt: 7 }, NOW_MS + 1_000, used);
    await end(platform, started, NOW_MS + 1_000, used);
    await end(platform, started, NOW_MS + 1_000, used);
    const unrun = await startTask(storage, "b", task("one"));
    const returned = { status: "queued", failed: false, failure: FAILURE } as const;
    const ends = [{ attempt: unrun, end: returned }];
    await storage.endAttempts({ nowMs: NOW_MS + 5_000, ends });
    expect(await sums(platform, [])).toMatchObject([
      { tasks: 2, runMs: 1_000, units: { tokens: 1 } },
    ]);
  });

  it("counts no submit twice, and none that was refused", async (platform) => {
    await deployTwo(platform);
    const { storage } = platform;
    const keyed = task("one", { idempotency: { key: "k", digest: "d" } });
    await submit(storage, newTask("a", keyed), newTask("b", keyed));
    await submit(storage, newTask("a", { ...keyed, repeated: true }));
    await submit(storage, newTask("c", task("one", { queueLimit: 1 })));
    const lease = task("one", { leaseId: "lease-1" });
    await openLease(storage);
    await submit(storage, newTask("d", lease));
    await end(platform, attempt("d", { deploymentId: "one-id" }), NOW_MS + 1, { gpuMs: 0 });
    await submit(storage, newTask("d", { ...lease, repeated: true }));
    expect(await sums(platform, [])).toMatchObject([{ tasks: 2, runMs: 1, bytesIn: 28 }]);
  });

  it("counts bytes of files and of long texts", async (platform) => {
    await deployTwo(platform);
    const file = { contentType: "image/png", data: new Uint8Array(5_000) };
    const big = { json: "0", files: [file] };
    const started = await startTask(platform.storage, "a", { ...task("one"), arguments: big });
    const result = { json: "0", files: [{ ...file, data: new Uint8Array(7_000) }] };
    await end(platform, started, NOW_MS, { gpuMs: 0 }, { status: "success", result });
    expect(await sums(platform, [])).toMatchObject([{ bytesIn: 5_001, bytesOut: 7_001 }]);
  });

  it("adds what calls used, a flush that is repeated once", async (platform) => {
    await deployTwo(platform);
    const row = {
      ...{ deploymentId: "two-id", day: DAY, endpoint: "greet", tokenId: "token-2" },
      ...{ calls: 2, runMs: 10.4, gpuMs: 0.25, bytesIn: 5, bytesOut: 6, units: { tokens: 1.5 } },
    };
    const flush = { recorder: "node/1", sequence: 1, day: DAY, rows: [row] };
    await platform.hosting.addUsage(flush);
    await platform.hosting.addUsage(flush);
    await platform.hosting.addUsage({ ...flush, sequence: 2 });
    await platform.hosting.addUsage({
      ...flush,
      recorder: "node/2",
      rows: [{ ...row, units: {} }],
    });
    expect(await sums(platform, ["endpoint"])).toEqual([
      {
        ...{ day: undefined, deployment: undefined, endpoint: "greet", token: undefined },
        ...{ calls: 6, tasks: 0, runMs: 30, gpuMs: 0.75, bytesIn: 15, bytesOut: 18 },
        units: { tokens: 3 },
      },
    ]);
  });

  it("is read by days, deployments and tokens, and of one's own organization alone", async (platform) => {
    await deployTwo(platform);
    const { storage } = platform;
    for (const [id, changes] of [
      ["a", task("one")],
      ["b", task("two", { tokenId: "token-2", createdAtMs: NOW_MS + 20_000 })],
    ] as const) {
      await submit(storage, newTask(id, changes));
    }
    const of = (asked: Partial<UsageQuery>) => sums(platform, ["deployment"], asked);
    expect(await of({ deployments: ["two"] })).toMatchObject([{ deployment: "two", tasks: 1 }]);
    expect(await of({ tokenIds: ["token-1"] })).toMatchObject([{ deployment: "one", tasks: 1 }]);
    expect(await of({ fromDay: DAY + 1 })).toMatchObject([{ deployment: "two" }]);
    expect(await of({ toDay: DAY + 1 })).toMatchObject([{ deployment: "one" }]);
    expect(await of({ limit: 1 })).toHaveLength(1);
    expect(await of({ organizationId: "another" })).toEqual([]);
    expect(await sums(platform, [], { organizationId: "another" })).toEqual([]);
  });

  it("is told by name when its deployment and its token are deleted, until it is too old", async (platform) => {
    await deployTwo(platform);
    const { storage, organizationId } = platform;
    const { token } = await platform.token(organizationId, { fields: { name: "batch" } });
    const { tokenId } = token;
    const started = await startTask(storage, "a", task("one", { tokenId }));
    await end(platform, started, NOW_MS + 1_000, { gpuMs: 0, units: { tokens: 1 } });
    const deed = platform.deed("ada@example.com");
    await storage.accounts.deleteToken({ ...deed, organizationId, tokenId });
    await storage.accounts.deleteDeployment({ ...platform.deed(), organizationId, name: "one" });
    while ((await storage.pruneDeleted({ nowMs: platform.nowMs + 1, limit: 10 })) > 0) {}
    expect(await sums(platform, ["deployment", "token"])).toMatchObject([
      { deployment: "one", token: { id: tokenId, name: "batch" }, tasks: 1, runMs: 1_000 },
    ]);
    const keptMs = startOfDay(KEPT_DAYS);
    const prune = (nowMs: number) => platform.hosting.pruneUsage({ nowMs, limit: 100 });
    await prune(NOW_MS + keptMs);
    expect(await sums(platform, [])).toMatchObject([{ units: { tokens: 1 } }]);
    expect(await prune(Math.max(NOW_MS, platform.nowMs) + 2 * keptMs)).toBeGreaterThan(0);
    expect(await sums(platform, [])).toEqual([]);
  });
}

/** Deploys `one` and `two`. */
async function deployTwo(platform: HostingPlatform): Promise<void> {
  for (const name of ["one", "two"]) {
    await platform.deploy([name], { name, deploymentId: `${name}-id` });
  }
}

/** A task of one of them, that a token submits. */
function task(name: string, changes: Partial<NewTask> = {}): Partial<NewTask> {
  return {
    ...{ deploymentId: `${name}-id`, createdAtMs: NOW_MS, runAtMs: NOW_MS },
    ...{ expiresAtMs: NOW_MS + 1_000_000, tokenId: "token-1" },
    ...changes,
  };
}

async function end(
  { storage }: HostingPlatform,
  ...[ended, nowMs, used, how = success(42)]: [
    Parameters<typeof storage.endAttempts>[0]["ends"][number]["attempt"],
    number,
    NonNullable<Parameters<typeof storage.endAttempts>[0]["ends"][number]["used"]>,
    Parameters<typeof storage.endAttempts>[0]["ends"][number]["end"]?,
  ]
): Promise<void> {
  await storage.endAttempts({ nowMs, ends: [{ attempt: ended, end: how, used }] });
}

function sums(platform: HostingPlatform, by: UsageQuery["by"], asked: Partial<UsageQuery> = {}) {
  const { organizationId } = platform;
  return platform.hosting.readUsage({
    ...{ organizationId, fromDay: DAY, toDay: DAY + 10, by, deployments: [], tokenIds: [] },
    ...{ limit: 100, ...asked },
  });
}
