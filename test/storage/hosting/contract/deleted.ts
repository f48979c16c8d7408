import { expect } from "vitest";
import type { NewTask } from "../../../../src/storage/storage.ts";
import type { It } from "../contract.ts";
import { HOUR_MS, type HostingPlatform, sha256 } from "../fixtures.ts";

function newTask({ nowMs }: HostingPlatform, id: string, rest: Partial<NewTask> = {}) {
  return {
    deploymentId: "summarizer-id",
    taskId: id,
    endpoint: "summarize_batch",
    arguments: { json: "{}", files: [] },
    createdAtMs: nowMs,
    runAtMs: nowMs,
    expiresAtMs: nowMs + 24 * HOUR_MS,
    retentionMs: 24 * HOUR_MS,
    priority: 0,
    queueLimit: 100,
    ...rest,
  } as NewTask;
}

/** A finished, a running, a queued and a scheduled task. */
async function fill(platform: HostingPlatform): Promise<void> {
  const { storage, nowMs } = platform;
  await storage.openLease({ leaseId: "lease", owner: "node", nowMs, ttlMs: 60_000 });
  const claimed = { leaseId: "lease" };
  const tasks = [
    newTask(platform, "done", claimed),
    newTask(platform, "running", claimed),
    newTask(platform, "queued", { idempotency: { key: "key", digest: "digest" } }),
    newTask(platform, "later", { runAtMs: nowMs + HOUR_MS }),
  ];
  for (const outcome of await storage.submitTasks({ tasks })) {
    expect(outcome).toMatchObject({ outcome: "stored" });
  }
  const attempt = { ...attemptOf("done"), attempt: 1 };
  const end = { status: "success", result: { json: "1", files: [] } } as const;
  await storage.endAttempts({ nowMs, ends: [{ attempt, end }] });
}

const attemptOf = (taskId: string) => ({
  deploymentId: "summarizer-id",
  taskId,
  leaseId: "lease",
  attempt: 1,
});

export function deletedContract(it: It): void {
  it("are not deleted while tasks wait or run, unless by force", async (platform) => {
    await platform.deploy(["one"]);
    await fill(platform);
    const refused = { outcome: "has_tasks", queued: 2, running: 1 };
    expect(await platform.remove()).toEqual(refused);
    const name = "summarizer";
    const { organizationId } = platform;
    expect(await platform.accounts.findDeployment({ organizationId, name })).toBeDefined();
    expect(await platform.remove(name, true)).toEqual({
      outcome: "deleted",
      deploymentId: "summarizer-id",
    });
    const [event] = await platform.audit(organizationId);
    expect(event).toMatchObject({
      action: "deployment.delete",
      details: { queued: "2", running: "1" },
    });
  });

  it("leave no task behind, and their attempts are nobody's", async (platform) => {
    const { storage, nowMs } = platform;
    await platform.deploy(["one"]);
    await fill(platform);
    const other = newTask(platform, "other", { deploymentId: "other-id" });
    await storage.submitTasks({ tasks: [other] });
    await platform.remove("summarizer", true);
    await platform.prune();
    const deployment = { deploymentId: "summarizer-id" };
    for (const taskId of ["done", "running", "queued", "later"]) {
      expect(await storage.getTask({ ...deployment, taskId })).toBeUndefined();
    }
    expect(await storage.countTasks(deployment)).toEqual([]);
    expect(await storage.listAttempts({ leaseIds: ["lease"] })).toEqual([]);
    const ends = [{ attempt: attemptOf("running"), end: { status: "cancelled" } as const }];
    expect(await storage.endAttempts({ nowMs, ends })).toEqual([undefined]);
    expect(await storage.getTask({ deploymentId: "other-id", taskId: "other" })).toBeDefined();
    const count = { endpoint: "summarize_batch", queued: 1, running: 0 };
    expect(await storage.countTasks({ deploymentId: "other-id" })).toEqual([count]);
  });

  it("leave nothing else behind, and files go when no other deployment has them", async (platform) => {
    const { hosting, organizationId } = platform;
    const key = { organizationId, deploymentId: "summarizer-id" };
    await platform.deploy(["one", "common"]);
    await platform.deploy(["two", "common"]);
    await platform.deploy(["two", "common"], { name: "other", deploymentId: "other-id" });
    const line = {
      timeMs: 1,
      worker: "",
      revision: 1,
      taskId: "",
      stream: "stdout",
      level: "info",
      text: "x",
    } as const;
    await hosting.appendLogs({ ...key, nodeId: "node", lines: [line, line, line] });
    await platform.remove();
    await platform.prune();
    expect((await hosting.listRevisions({ ...key, limit: 10 })).items).toEqual([]);
    expect(await hosting.readLogs({ ...key, limit: 10 })).toEqual({ lines: [], lastSequence: 0 });
    platform.nowMs += HOUR_MS;
    await platform.sweep();
    expect(await platform.missing("one", "two", "common")).toEqual([sha256("one")]);
  });

  it("are watched for an hour, for nodes that have not heard of it", async (platform) => {
    const { storage } = platform;
    await platform.deploy(["one"]);
    await platform.remove();
    await platform.prune();
    const late = newTask(platform, "late");
    await storage.submitTasks({ tasks: [late] });
    platform.nowMs += HOUR_MS;
    await platform.prune();
    expect(await storage.getTask(late)).toBeUndefined();
    // Nothing watches any more: ids are not used twice.
    await storage.submitTasks({ tasks: [late] });
    platform.nowMs += HOUR_MS;
    await platform.prune();
    expect(await storage.getTask(late)).toBeDefined();
  });

  it("keep their mark while tasks are left, whichever is asked first", async (platform) => {
    const { storage, hosting } = platform;
    await platform.deploy(["one"]);
    await fill(platform);
    await platform.remove("summarizer", true);
    platform.nowMs += 2 * HOUR_MS;
    const { nowMs } = platform;
    while ((await hosting.pruneHosting({ nowMs, limit: 10 })) > 0) {}
    platform.nowMs += 60_000;
    await platform.prune();
    const key = { deploymentId: "summarizer-id", taskId: "queued" };
    expect(await storage.getTask(key)).toBeUndefined();
  });
}
