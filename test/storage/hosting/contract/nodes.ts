import { expect } from "vitest";
import type { ReportedStatus } from "../../../../src/storage/hosting/nodes.ts";
import type { It } from "../contract.ts";
import { artifactOf, HOUR_MS, type HostingPlatform } from "../fixtures.ts";

const TTL_MS = 15_000;

function beat({ hosting, nowMs }: HostingPlatform, nodeId: string, url?: string) {
  return hosting.beat({ nodeId, machine: "box", nowMs, ttlMs: TTL_MS, ...(url && { url }) });
}

const alone = { living: 1, taking: 1, isDrained: false };

interface Said {
  readonly nodeId: string;
  readonly status: ReportedStatus;
  readonly revision?: number;
  readonly targetRevision?: number;
  readonly version?: number;
  readonly workers?: number;
  readonly reason?: string;
}

async function say({ hosting, organizationId }: HostingPlatform, ...said: readonly Said[]) {
  for (const { nodeId, status, reason = "", workers = 1, ...about } of said) {
    const { revision = 1, targetRevision = 1, version = 1 } = about;
    const key = { organizationId, deploymentId: "summarizer-id" };
    const report = { ...key, status, reason, workers, revision, targetRevision, version };
    await hosting.reportDeployments({ nowMs: 0, nodeId, reports: [report] });
  }
}

async function state({ hosting, accounts, organizationId, nowMs }: HostingPlatform) {
  const found = await accounts.findDeployment({ organizationId, name: "summarizer" });
  const deployments = found === undefined ? [] : [found];
  const [described] = await hosting.describeDeployments({ organizationId, deployments, nowMs });
  return described;
}

export function nodesContract(it: It): void {
  it("knows the nodes that live", async (platform) => {
    const { hosting, nowMs: startedAtMs } = platform;
    const living = () => hosting.listNodes({ nowMs: platform.nowMs });
    expect(await beat(platform, "b", "http://10.0.0.2:3000")).toEqual(alone);
    expect(await beat(platform, "a")).toMatchObject({ living: 2, taking: 2 });
    expect(await beat(platform, "b", "http://10.0.0.2:3000")).toMatchObject({ living: 2 });
    const facts = undefined;
    const told = { machine: "box", startedAtMs, heardAtMs: expect.any(Number), facts };
    const a = { ...told, nodeId: "a", url: undefined };
    const b = { ...told, nodeId: "b", url: "http://10.0.0.2:3000" };
    expect(await living()).toEqual([a, b]);
    platform.nowMs += TTL_MS - 1;
    await beat(platform, "a");
    platform.nowMs += 1;
    expect(await beat(platform, "a")).toEqual(alone);
    expect(await living()).toEqual([a]);
    await hosting.endNode({ nodeId: "a" });
    expect(await living()).toEqual([]);
  });

  it("keeps what a node said of itself last", async ({ hosting, nowMs }) => {
    const facts = {
      version: "1.2.3",
      sandbox: "kernel",
      workers: 3,
      maxWorkers: 8,
      memoryBytes: 2 ** 40,
      maxMemoryBytes: 2 ** 41,
      waiting: 1,
      freeDiskBytes: 10,
      diskBytes: 20,
    };
    const node = { nodeId: "n", nowMs, ttlMs: TTL_MS };
    await hosting.beat({ ...node, facts: { ...facts, workers: 0 } });
    await hosting.beat({ ...node, facts });
    expect(await hosting.listNodes({ nowMs })).toMatchObject([{ nodeId: "n", facts }]);
  });

  it("adds up what living nodes say of a deployment", async (platform) => {
    await platform.deploy(["one"], { secrets: { B: "b", A: "a" } });
    for (const nodeId of ["a", "b", "c"]) {
      await beat(platform, nodeId);
    }
    await say(platform, { nodeId: "a", status: "starting", workers: 0 });
    await say(platform, { nodeId: "a", status: "ready", workers: 2 });
    await say(platform, { nodeId: "b", status: "ready", workers: 1 });
    await say(platform, { nodeId: "dead", status: "failed", workers: 9 });
    expect(await state(platform)).toEqual({
      status: "ready",
      reason: "",
      revision: 1,
      workers: 3,
      nodes: 2,
      observedVersion: 1,
      placements: [
        { nodeId: "a", status: "ready", revision: 1, workers: 2 },
        { nodeId: "b", status: "ready", revision: 1, workers: 1 },
      ],
      secretNames: ["A", "B"],
      withheldSecrets: [],
      endpoints: artifactOf("one").endpoints,
    });
    await say(platform, { nodeId: "b", status: "stopped", workers: 1 });
    expect(await state(platform)).toMatchObject({ placements: [{}, { nodeId: "b", workers: 1 }] });
    await say(platform, { nodeId: "b", status: "stopped", workers: 0 });
    expect((await state(platform))?.placements).toHaveLength(1);
    await platform.hosting.endNode({ nodeId: "b" });
    expect(await state(platform)).toMatchObject({
      workers: 2,
      nodes: 1,
      placements: [{ nodeId: "a" }],
    });
    platform.nowMs += TTL_MS;
    const gone = { status: "starting", revision: undefined, workers: 0, nodes: 0, placements: [] };
    expect(await state(platform)).toMatchObject(gone);
  });

  it("says what a deployment is, of all nodes together", async (platform) => {
    const { hosting, organizationId } = platform;
    await platform.deployment(organizationId, "summarizer");
    expect(await state(platform)).toMatchObject({ status: "stopped", endpoints: [] });
    await platform.remove();
    await platform.deploy(["one"]);
    await beat(platform, "a");
    await beat(platform, "b");
    const both = async (a: Omit<Said, "nodeId">, b: Omit<Said, "nodeId">) => {
      await say(platform, { nodeId: "a", ...a }, { nodeId: "b", ...b });
      return state(platform);
    };
    const ready = { status: "ready" } as const;
    const failed = { status: "failed", reason: "import failed" } as const;
    const low = { status: "degraded", reason: "1 of 2 workers" } as const;
    expect(await both(ready, low)).toMatchObject(low);
    expect(await both(ready, failed)).toMatchObject({ ...failed, status: "degraded" });
    expect(await both(failed, failed)).toMatchObject(failed);
    expect(await both(ready, { status: "starting" })).toMatchObject({ status: "starting" });
    await platform.deploy(["two"]);
    const next = { targetRevision: 2, revision: 2 };
    // Which of them are about the revision before is seen by their targets.
    expect(await both({ ...ready, ...next }, ready)).toMatchObject({
      status: "starting",
      revision: 1,
    });
    const old = { ...next, revision: 1, ...failed };
    expect(await both(old, old)).toMatchObject({ status: "failed", revision: 1, nodes: 2 });
    const idle = { ...ready, ...next, workers: 0 };
    expect(await both(idle, idle)).toMatchObject({ status: "ready", revision: 2, workers: 0 });
    const name = "summarizer";
    const stop = { ...platform.deed(), organizationId, name, desiredState: "stopped" } as const;
    await hosting.setDesiredState(stop);
    await both({ ...ready, ...next }, idle);
    expect(await state(platform)).toMatchObject({
      status: "stopped",
      reason: expect.stringMatching(/^1 worker/),
    });
  });

  it("is degraded by nodes that wait for workers only while no other node runs it", async (platform) => {
    await platform.deploy(["one"]);
    await beat(platform, "a");
    await beat(platform, "b");
    const waits = { status: "waiting", workers: 0, reason: "it waits for a worker" } as const;
    await say(platform, { nodeId: "a", ...waits }, { nodeId: "b", ...waits });
    expect(await state(platform)).toMatchObject({
      status: "degraded",
      reason: "it waits for a worker",
      revision: 1,
      workers: 0,
      placements: [{ nodeId: "a", status: "degraded" }, { nodeId: "b" }],
    });
    await say(platform, { nodeId: "b", status: "ready", workers: 1 });
    expect(await state(platform)).toMatchObject({ status: "ready", reason: "", workers: 1 });
    await say(platform, { nodeId: "b", status: "failed", workers: 0, reason: "import failed" });
    expect(await state(platform)).toMatchObject({ status: "failed", reason: "import failed" });
  });

  it("says what a launcher says while no worker comes", async (platform) => {
    const { hosting, organizationId } = platform;
    await platform.deploy(["one"]);
    await beat(platform, "a");
    const waits = { nodeId: "a", status: "waiting", reason: "it waits for a worker" } as const;
    const reasonWhile = async (said: Said, launch: object, ttlMs = 30_000) => {
      const told = { on: "slurm", hostname: "login", machines: 1, starting: 0, joined: 0 };
      const report = { deploymentId: "summarizer-id", ...told, failed: 0, reason: "", ...launch };
      const launcher = { organizationId, launcher: "l", tokenId: "t", ttlMs };
      await hosting.holdLaunches({ ...launcher, nowMs: platform.nowMs, reports: [report] });
      await say(platform, said);
      return (await state(platform))?.reason;
    };
    const quota = { failed: 3, reason: "no quota" };
    expect(await reasonWhile({ ...waits, workers: 0 }, quota)).toBe(
      "it waits for a worker; the launcher on slurm says: no quota",
    );
    const full = {
      nodeId: "a",
      status: "degraded",
      reason: "no room\na line of its output",
    } as const;
    expect(await reasonWhile({ ...full, workers: 0 }, quota)).toBe(
      "no room; the launcher on slurm says: no quota\na line of its output",
    );
    expect(await reasonWhile({ ...full, workers: 1 }, quota)).toBe(full.reason);
    expect(await reasonWhile({ ...waits, status: "ready" }, quota)).toBe("");
    expect(await reasonWhile({ ...waits, workers: 0 }, { starting: 2 })).toBe(
      "it waits for a worker; the launcher on slurm has started 2 machines, and none takes calls yet",
    );
    expect(await reasonWhile({ ...waits, workers: 0 }, {})).toBe("it waits for a worker");
    const long = await reasonWhile({ ...waits, workers: 0 }, { reason: "x".repeat(2_000) });
    expect(long?.length).toBeLessThan(500);
    await hosting.endLaunches({ organizationId, launcher: "l", tokenId: "t" });
    expect((await state(platform))?.reason).toBe("it waits for a worker");
  });

  it("takes what a node says of another revision for no news of this one", async (platform) => {
    await platform.deploy(["one"]);
    await platform.deploy(["two"]);
    await beat(platform, "a");
    await beat(platform, "b");
    const before = { targetRevision: 1, revision: 1 };
    for (const status of ["waiting", "ready", "failed", "degraded"] as const) {
      await say(platform, { nodeId: "a", workers: 0, reason: "of one", status, ...before });
      await say(platform, {
        nodeId: "b",
        workers: 0,
        reason: "of two",
        status: "failed",
        targetRevision: 2,
      });
      expect(await state(platform)).toMatchObject({ status: "starting", reason: "of two" });
    }
    await say(platform, {
      nodeId: "a",
      workers: 0,
      reason: "of one",
      status: "waiting",
      targetRevision: 2,
    });
    expect(await state(platform)).toMatchObject({ status: "failed", reason: "of two" });
  });

  it("says which version of a deployment all living nodes have reported on", async (platform) => {
    await platform.deploy(["one"]);
    expect(await state(platform)).toMatchObject({ observedVersion: 0 });
    await beat(platform, "a");
    await beat(platform, "b");
    await say(platform, { nodeId: "a", status: "ready", version: 3 });
    expect(await state(platform)).toMatchObject({ observedVersion: 3 });
    await say(platform, { nodeId: "b", status: "ready", version: 2 });
    expect(await state(platform)).toMatchObject({ observedVersion: 2 });
    await say(platform, { nodeId: "b", status: "ready", version: 4 });
    expect(await state(platform)).toMatchObject({ observedVersion: 3 });
  });

  it("keeps what living nodes tell of their workers", async (platform) => {
    const { hosting, organizationId } = platform;
    const key = { organizationId, deploymentId: "summarizer-id" };
    const list = () => hosting.listWorkers({ ...key, nowMs: platform.nowMs });
    const worker = {
      workerId: "a/1",
      revision: 1,
      machine: { hostname: "gpu-7", platform: "linux-x64", version: "1.0.0", labels: { gpu: "x" } },
      startedAtMs: 5,
      calls: 2,
      ready: true,
    };
    const tell = (nodeId: string, workers = [worker], omitted = 0) =>
      hosting.reportWorkers({ nodeId, reports: [{ ...key, workers, omitted }] });
    await platform.deploy(["one"]);
    await beat(platform, "a");
    await beat(platform, "b");
    // There is no report that they could belong to yet.
    expect(await tell("a")).toEqual([]);
    expect(await list()).toEqual([]);
    await say(platform, { nodeId: "a", status: "ready" }, { nodeId: "b", status: "ready" });
    expect(await tell("b", [worker], 3)).toEqual(["summarizer-id"]);
    await tell("a");
    const a = { nodeId: "a", workers: [worker], omitted: 0 };
    expect(await list()).toEqual([a, { nodeId: "b", workers: [worker], omitted: 3 }]);
    await say(platform, { nodeId: "a", status: "ready", workers: 2 });
    await tell("b", []);
    expect(await list()).toEqual([a]);
    platform.nowMs += TTL_MS;
    expect(await list()).toEqual([]);
  });

  it("takes reports back, and none of deployments that are not there", async (platform) => {
    const { hosting, organizationId } = platform;
    const deployments = [{ organizationId, deploymentId: "summarizer-id" }];
    await beat(platform, "a");
    await say(platform, { nodeId: "a", status: "ready" });
    await platform.deploy(["one"]);
    expect(await state(platform)).toMatchObject({ nodes: 0 });
    await say(platform, { nodeId: "a", status: "ready" });
    expect(await state(platform)).toMatchObject({ nodes: 1 });
    await hosting.withdrawReports({ nodeId: "a", deployments });
    expect(await state(platform)).toMatchObject({ nodes: 0 });
  });

  it("forgets nodes an hour after their death, with what they said", async (platform) => {
    await platform.deploy(["one"]);
    await beat(platform, "a");
    await say(platform, { nodeId: "a", status: "ready" });
    platform.nowMs += TTL_MS + HOUR_MS + 1;
    await platform.prune();
    await beat(platform, "a");
    expect(await state(platform)).toMatchObject({ nodes: 0 });
  });
}
