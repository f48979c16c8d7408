import { expect } from "vitest";
import type { It } from "../contract.ts";
import type { HostingPlatform } from "../fixtures.ts";

const TTL_MS = 15_000;

const auditOf = async ({ accounts, organizationId }: HostingPlatform) => {
  const { items } = await accounts.listAuditEvents({ organizationId, limit: 100 });
  return items
    .filter(({ action }) => /^(machine|node)\./.test(action))
    .map(({ action, subject }) => [action, subject]);
};

export function machinesContract(it: It): void {
  it("keeps which are drained, each once, and notes what changed in the audit log", async (platform) => {
    const { hosting, organizationId } = platform;
    const key = { organizationId, machine: "gpu-1" };
    const drain = (machine: string, limit = 2) =>
      hosting.drainMachine({ ...platform.deed(), organizationId, machine, limit });
    const first = platform.deed();
    expect(await hosting.drainMachine({ ...first, ...key, limit: 2 })).toEqual({
      outcome: "drained",
    });
    expect(await drain("gpu-1", 1)).toEqual({ outcome: "drained" });
    expect(await drain("日本")).toEqual({ outcome: "drained" });
    expect(await drain("third")).toEqual({ outcome: "limit" });
    const listed = await hosting.listDrained({ organizationId });
    expect(listed.map(({ machine }) => machine)).toEqual(["gpu-1", "日本"]);
    expect(listed[0]).toEqual({
      machine: "gpu-1",
      drainedAtMs: first.nowMs,
      drainedBy: first.by.name,
    });
    await hosting.resumeMachine({ ...platform.deed(), ...key });
    await hosting.resumeMachine({ ...platform.deed(), ...key });
    expect(await hosting.listDrained({ organizationId })).toHaveLength(1);
    expect(await hosting.listDrained({ organizationId: "another" })).toEqual([]);
    expect(await auditOf(platform)).toEqual([
      ["machine.resume", "gpu-1"],
      ["machine.drain", "日本"],
      ["machine.drain", "gpu-1"],
    ]);
  });

  it("of nodes share no work while they are drained, and every organization is told", async (platform) => {
    const { hosting, nowMs } = platform;
    const beat = (nodeId: string, machine: string) =>
      hosting.beat({ nodeId, machine, nowMs, ttlMs: TTL_MS });
    await beat("a-1", "a");
    expect(await beat("b-1", "b")).toEqual({ living: 2, taking: 2, isDrained: false });
    const key = { organizationId: undefined, machine: "a" };
    await hosting.drainMachine({ ...platform.deed(), ...key, limit: 1 });
    expect(await beat("a-1", "a")).toEqual({ living: 2, taking: 1, isDrained: true });
    expect(await beat("b-1", "b")).toEqual({ living: 2, taking: 1, isDrained: false });
    // The machine is started again: its node has another id.
    await hosting.endNode({ nodeId: "a-1" });
    expect(await beat("a-2", "a")).toMatchObject({ isDrained: true });
    await hosting.resumeMachine({ ...platform.deed(), ...key });
    expect(await beat("a-2", "a")).toEqual({ living: 2, taking: 2, isDrained: false });
    expect(await auditOf(platform)).toEqual([
      ["node.resume", "a"],
      ["node.drain", "a"],
    ]);
  });
}
