import { expect } from "vitest";
import { attempt, endAttempt, newTask, openLease, submit, success } from "../../fixtures.ts";
import type { It } from "../contract.ts";
import type { HostingPlatform } from "../fixtures.ts";

const WRITTEN = {
  worker: "1",
  revision: 1,
  stream: "stdout",
  level: "error",
  taskId: "task",
} as const;

function append({ hosting, organizationId, nowMs }: HostingPlatform, ...texts: readonly string[]) {
  const lines = texts.map((text) => ({ ...WRITTEN, timeMs: nowMs, text }));
  const key = { organizationId, deploymentId: "summarizer-id" };
  return hosting.appendLogs({ ...key, nodeId: "node", lines });
}

async function read(platform: HostingPlatform, limit: number, afterSequence?: number) {
  const { hosting, organizationId } = platform;
  const { lines, lastSequence } = await hosting.readLogs({
    organizationId,
    deploymentId: "summarizer-id",
    limit,
    ...(afterSequence !== undefined && { afterSequence }),
  });
  return [...lines.map(({ sequence, text }) => `${sequence} ${text}`), lastSequence];
}

export function logsContract(it: It): void {
  it("keeps lines in their order, to be read from the end or after one", async (platform) => {
    await platform.deploy(["one"]);
    expect(await read(platform, 10)).toEqual([0]);
    await append(platform, "a", "b");
    await append(platform, "c\0", "d");
    expect(await read(platform, 3)).toEqual(["2 b", "3 c\uFFFD", "4 d", 4]);
    expect(await read(platform, 2, 1)).toEqual(["2 b", "3 c\uFFFD", 4]);
    expect(await read(platform, 2, 4)).toEqual([4]);
    expect(await read(platform, 0)).toEqual([4]);
    const { hosting, organizationId, nowMs: timeMs } = platform;
    const key = { organizationId, deploymentId: "summarizer-id" };
    const { lines } = await hosting.readLogs({ ...key, limit: 1 });
    expect(lines).toEqual([{ ...WRITTEN, nodeId: "node", sequence: 4, timeMs, text: "d" }]);
  });

  it("keeps the newest 10,000 lines, and the beginning of long ones", async (platform) => {
    await platform.deploy(["one"]);
    await append(platform, ...Array.from({ length: 6_000 }, (_, index) => `${index}`));
    await append(platform, ...Array.from({ length: 6_000 }, (_, index) => `${index}`));
    expect(await read(platform, 1, 0)).toEqual(["2001 2000", 12_000]);
    await append(platform, "x".repeat(8_001));
    expect(await read(platform, 1)).toEqual([`12001 ${"x".repeat(8_000)}`, 12_001]);
  });

  it("loses the lines of a task that is deleted, and no others", async (platform) => {
    const { storage, nowMs } = platform;
    await platform.deploy(["one"]);
    const deploymentId = "summarizer-id";
    const leaseId = "lease";
    const times = { createdAtMs: nowMs, runAtMs: nowMs, expiresAtMs: nowMs + 60_000 };
    await openLease(storage, leaseId, nowMs);
    await submit(storage, newTask("task", { deploymentId, leaseId, ...times }));
    await append(platform, "of the task");
    const key = { organizationId: platform.organizationId, deploymentId };
    const line = { ...WRITTEN, taskId: "other", timeMs: nowMs, text: "of another" };
    await platform.hosting.appendLogs({ ...key, nodeId: "node", lines: [line] });
    await endAttempt(storage, attempt("task", { deploymentId, leaseId }), success(1), nowMs);
    const deleted = await storage.deleteTasks({ deploymentId, taskIds: ["task"], nowMs });
    expect(deleted).toEqual(["deleted"]);
    expect(await read(platform, 10)).toEqual(["2 of another", 2]);
  });

  it("drops lines of what is not deployed", async (platform) => {
    await append(platform, "a");
    expect(await read(platform, 10)).toEqual([0]);
  });
}
