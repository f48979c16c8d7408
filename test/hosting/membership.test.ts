/** Heartbeats of a node, of which the test answers each. */
import { expect, it, vi } from "vitest";
import { NodeMembership } from "../../src/hosting/membership.ts";
import type { LivingNodes } from "../../src/storage/hosting/nodes.ts";

it("shares the workers among the nodes whose machines are not drained, and tells of its own", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  let answer: LivingNodes = { living: 3, taking: 3, isDrained: false };
  let beats = 0;
  const told: string[] = [];
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const nodes = new NodeMembership({
    hosting: {
      beat: async () => {
        beats += 1;
        return answer;
      },
      endNode: async () => {},
    },
    ...{ shared: true, url: "http://10.0.0.1", facts: () => ({}) as never, now: Date.now, log },
    onChange: () => told.push("change"),
    onDrained: (isDrained, others) => told.push(`${isDrained} ${others}`),
    ...{ onRevived() {}, onBeat() {} },
  });
  const beat = async (next: LivingNodes): Promise<string[]> => {
    answer = next;
    for (const before = beats; beats === before; ) {
      await vi.advanceTimersByTimeAsync(1_000);
    }
    return told.splice(0);
  };
  try {
    await nodes.start();
    expect(told.splice(0)).toEqual(["change"]);
    expect(nodes.shareOf(9)).toBe(3);
    // Another one is drained.
    expect(await beat({ living: 3, taking: 2, isDrained: false })).toEqual(["change"]);
    expect(nodes.shareOf(9)).toBe(5);
    expect(await beat({ living: 3, taking: 1, isDrained: true })).toEqual(["true 1", "change"]);
    expect(await beat({ living: 3, taking: 0, isDrained: true })).toEqual(["true 0", "change"]);
    expect(nodes.living).toBe(3);
    expect(await beat({ living: 3, taking: 1, isDrained: false })).toEqual(["false 0", "change"]);
    expect(await beat({ living: 3, taking: 1, isDrained: false })).toEqual([]);
  } finally {
    await nodes[Symbol.asyncDispose]();
    vi.useRealTimers();
  }
});
