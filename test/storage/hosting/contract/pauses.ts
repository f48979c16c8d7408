import { expect } from "vitest";
import type { NewTask } from "../../../../src/storage/storage.ts";
import {
  claim,
  endAttempt,
  FAILURE,
  newTask,
  openLease,
  RETENTION_MS,
  taskIds,
} from "../../fixtures.ts";
import type { It } from "../contract.ts";
import type { HostingPlatform } from "../fixtures.ts";

const DEPLOYMENT_ID = "summarizer-id";
const ENDPOINT = "summarize_batch";

function change(platform: HostingPlatform, rest: { name?: string; endpoint?: string } = {}) {
  const { organizationId } = platform;
  return {
    ...platform.deed("ada@example.com"),
    ...{ organizationId, name: "summarizer", endpoint: ENDPOINT, ...rest },
  };
}

const pause = (platform: HostingPlatform, rest = {}, limit = 3) =>
  platform.hosting.pauseEndpoint({ ...change(platform, rest), limit });

const resume = (platform: HostingPlatform, rest = {}) =>
  platform.hosting.resumeEndpoint(change(platform, rest));

function taskOf({ nowMs }: HostingPlatform, taskId: string, rest: Partial<NewTask> = {}): NewTask {
  return newTask(taskId, {
    ...{ deploymentId: DEPLOYMENT_ID, endpoint: ENDPOINT, createdAtMs: nowMs, runAtMs: nowMs },
    expiresAtMs: nowMs + RETENTION_MS,
    ...rest,
  });
}

export function pausesContract(it: It): void {
  it("starts nothing of a paused endpoint, and all of it once it is resumed", async (platform) => {
    const { storage, nowMs } = platform;
    await platform.deploy(["code"]);
    await openLease(storage, "lease", nowMs);
    await pause(platform);
    const leaseId = "lease";
    const stored = await storage.submitTasks({
      tasks: [
        taskOf(platform, "waits"),
        // For slots that were free when it came.
        taskOf(platform, "claimed", { leaseId }),
        taskOf(platform, "keyed", { leaseId, idempotency: { key: "once", digest: "d" } }),
        taskOf(platform, "other", { leaseId, endpoint: "other" }),
        taskOf(platform, "elsewhere", { leaseId, deploymentId: "elsewhere-id" }),
      ],
    });
    expect(stored.map((one) => one.outcome === "stored" && one.task.status)).toEqual([
      ...["queued", "queued", "queued", "running", "running"],
    ]);
    const claimed = async () =>
      taskIds(
        await claim(storage, { deploymentId: DEPLOYMENT_ID, endpoint: ENDPOINT, leaseId, nowMs }),
      );
    expect(await claimed()).toEqual([]);
    await resume(platform);
    expect((await claimed()).sort()).toEqual(["claimed", "keyed", "waits"]);
  });

  it("finds nothing due of a paused endpoint, so that no worker starts for it", async (platform) => {
    const { storage, nowMs } = platform;
    const deploymentId = DEPLOYMENT_ID;
    await platform.deploy(["code"]);
    await storage.submitTasks({
      tasks: [
        taskOf(platform, "waits"),
        taskOf(platform, "delayed", { createdAtMs: nowMs - 9, runAtMs: nowMs - 1 }),
        taskOf(platform, "other", { endpoint: "other" }),
      ],
    });
    const due = async () => {
      const counted = await storage.countDue({ deploymentId, nowMs, limit: 10 });
      const survey = await storage.survey({ nowMs, deploymentIds: [deploymentId] });
      expect(survey.due.map(({ endpoint }) => endpoint).sort()).toEqual(
        counted.map(({ endpoint }) => endpoint).sort(),
      );
      return Object.fromEntries(counted.map((one) => [one.endpoint, one.due]));
    };
    expect(await due()).toEqual({ other: 1, [ENDPOINT]: 2 });
    await pause(platform);
    expect(await due()).toEqual({ other: 1 });
    const counts = await storage.countTasks({ deploymentId });
    expect(counts).toContainEqual({ endpoint: ENDPOINT, queued: 2, running: 0 });
    await resume(platform);
    expect(await due()).toEqual({ other: 1, [ENDPOINT]: 2 });
  });

  it("neither counts nor starts suspects of a paused endpoint", async (platform) => {
    const { storage, nowMs } = platform;
    const [deploymentId, endpoint, leaseId] = [DEPLOYMENT_ID, ENDPOINT, "lease"];
    await platform.deploy(["code"]);
    await openLease(storage, leaseId, nowMs);
    await storage.submitTasks({ tasks: [taskOf(platform, "suspect", { leaseId })] });
    const attempt = { deploymentId, taskId: "suspect", leaseId, attempt: 1 };
    await endAttempt(storage, attempt, { status: "worker_lost", failure: FAILURE }, nowMs);
    const found = async () =>
      (await storage.survey({ nowMs, deploymentIds: [deploymentId] })).suspects;
    const claimed = async () =>
      taskIds(await claim(storage, { deploymentId, endpoint, leaseId, nowMs, suspects: true }));
    await pause(platform);
    expect([await found(), await claimed()]).toEqual([[], []]);
    await resume(platform);
    expect(await found()).toEqual([{ deploymentId, endpoint, count: 1 }]);
    expect(await claimed()).toEqual(["suspect"]);
  });

  it("tells the nodes and the audit log of each pause and its end once", async (platform) => {
    const { hosting, organizationId, nowMs } = platform;
    const { version } = await platform.deploy(["code"]);
    const paused = { endpoint: ENDPOINT, pausedAtMs: nowMs, pausedBy: "ada@example.com" };
    const desired = () => hosting.getHosted({ deploymentId: DEPLOYMENT_ID });
    const pausing = async () => {
      expect(await pause(platform)).toMatchObject({
        outcome: "changed",
        deployment: { pausedEndpoints: [paused], version: version + 1 },
      });
      platform.nowMs += 1_000;
      await pause(platform);
    };
    expect(await platform.changesOf(pausing)).toEqual(["deployment summarizer-id"]);
    expect(await desired()).toMatchObject({ pausedEndpoints: [paused] });
    const resuming = async () => {
      await resume(platform);
      expect(await resume(platform)).toMatchObject({
        deployment: { pausedEndpoints: [], version: version + 2 },
      });
    };
    expect(await platform.changesOf(resuming)).toEqual(["deployment summarizer-id"]);
    expect(await desired()).toMatchObject({ pausedEndpoints: [] });
    const events = await platform.audit(organizationId);
    expect(events.slice(0, 2)).toMatchObject([
      { action: "deployment.resume_endpoint", details: { endpoint: ENDPOINT } },
      {
        action: "deployment.pause_endpoint",
        subject: "summarizer",
        details: { endpoint: ENDPOINT },
      },
    ]);
  });

  it("keeps pauses through revisions, as many as are allowed", async (platform) => {
    await platform.deploy(["one"]);
    await pause(platform);
    await pause(platform, { endpoint: "/a path" });
    expect(await pause(platform, { endpoint: "third" }, 2)).toEqual({ outcome: "limit" });
    expect(await pause(platform, {}, 2)).toMatchObject({ outcome: "changed" });
    const again = await platform.deploy(["two"]);
    expect(again.pausedEndpoints.map(({ endpoint }) => endpoint)).toEqual(["/a path", ENDPOINT]);
    expect(await pause(platform, { name: "nobody" })).toEqual({ outcome: "not_found" });
    expect(await resume(platform, { name: "nobody" })).toEqual({ outcome: "not_found" });
  });
}
