/** What a worker holds is what the kernel counts, however it holds it. */
import { globSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type LaunchOf, launchersFor } from "../../../src/pool/launchers.ts";
import type { KernelSandbox } from "../../../src/pool/sandbox/sandbox.ts";
import { leftOut } from "../../needed.ts";
import {
  kernelSandbox,
  skipped as noSandbox,
  withoutGroups,
} from "../../pool/sandbox/available.ts";
import { pythonMissing } from "../clients/python-environment.ts";
import type { Hosting } from "../deployments/hosting.ts";
import { fixture, hostedPython } from "./hosted.ts";

const skipped = noSandbox || leftOut(pythonMissing);
const MEBIBYTE = 1024 ** 2;
const LIMITS = { memoryBytes: 160 * MEBIBYTE, diskBytes: 64 * MEBIBYTE };
const END_WITHIN_MS = 5_000;

const OUT_OF_MEMORY = /^out of memory: it used \d+ MiB of 160 MiB$/;
const OUT_OF_DISK = /^out of disk: it stored \d+ MiB of 64 MiB in its scratch folder$/;

/** Each way, and what the function is answered, or what its worker is ended for. */
const WAYS: [string, string | RegExp][] = [
  ["memory shared without a file", "EPERM"],
  ["shared zeros", "ENODEV"],
  ["a file in memory", "EPERM"],
  ["page tables", OUT_OF_MEMORY],
  // As many as a process may have hold less than its limit of memory.
  ["buffers of Unix sockets", "EMFILE"],
  ["buffers of sockets that nobody accepted", OUT_OF_MEMORY],
  // In a group, the kernel gives them less as they grow.
  ["buffers of TCP sockets", /^EMFILE$|^out of memory: it used \d+ MiB of 160 MiB$/],
  ["20,000 sockets", "EMFILE"],
  ["5,000 folders in each other", /^out of disk: /],
  ["folders that nobody may read", /^out of disk: /],
  ["20 GiB at once", "EFBIG"],
  ["deleted files that are open", OUT_OF_DISK],
  // On a slow machine, the descriptors may run out before it is looked at.
  ["deleted files behind other descriptors", /^EMFILE$|^out of disk: it stored \d+ MiB of 64 MiB/],
  ["deleted files that are mapped", OUT_OF_DISK],
  ["deleted files that are sent", /^out of disk: it sent files or sockets to itself/],
];

/** Whether the program in the sandbox is in its group, and the most that this held, for each worker. */
interface Held {
  readonly isInside: boolean;
  readonly peakBytes: number;
}

/** Starts as `launchOf` does, and reads what a group tells of its worker before it is removed. */
function observed(launchOf: LaunchOf, held: Held[]): LaunchOf {
  return (service) => (options) => {
    const launched = launchOf(service)(options);
    const { memory, child } = launched;
    if (memory === undefined) {
      return launched;
    }
    const group = groupOf(child.pid);
    const timer = setInterval(() => {
      if (launched.pid() !== undefined) {
        isInside = groupOf(launched.pid()) === group;
        clearInterval(timer);
      }
    }, 10);
    let isInside = false;
    const end = (): void => {
      clearInterval(timer);
      held.push({ isInside, peakBytes: peakOf(group) });
      memory[Symbol.dispose]();
    };
    const { enter, exceeded } = memory;
    return { ...launched, memory: { enter, exceeded, [Symbol.dispose]: end } };
  };
}

/** The name of the group of a process, which is that of its folder. */
function groupOf(pid: number | undefined): string {
  const groups = readFileSync(`/proc/${pid}/cgroup`, "utf8");
  return /tessera-\d+-\d+-\d+/.exec(groups)?.[0] ?? "none";
}

function peakOf(group: string): number {
  const names = "memory.max_usage_in_bytes,memory.peak";
  const [file = ""] = globSync(`/sys/fs/cgroup/**/${group}/{${names}}`);
  return Number(readFileSync(file, "utf8"));
}

describe.skipIf(skipped)(`a service in Python that only the watch holds${skipped}`, () => {
  holding([], { memoryGroups: undefined });
});

describe.skipIf(skipped || withoutGroups)(
  `a service in Python in a group of its own${skipped || withoutGroups}`,
  () => {
    const held: Held[] = [];
    holding(held);

    it("never has more than one and a half of its limit, and does not leave its group", () => {
      const inside = held.map(({ isInside }) => isInside);
      expect(inside.length).toBeGreaterThan(5);
      expect(inside).toEqual(inside.map(() => true));
      const peaks = held.map(({ peakBytes }) => peakBytes / LIMITS.memoryBytes);
      expect(Math.max(...peaks)).toBeLessThanOrEqual(1.5);
    });
  },
);

function holding(held: Held[], changed: Partial<KernelSandbox> = {}): void {
  let hosting: Hosting;
  let neighbour: Hosting;
  beforeAll(async () => {
    const launchOf = observed(launchersFor({ ...kernelSandbox(), ...changed }), held);
    hosting = await hostedPython(fixture("holding.py"), launchOf, LIMITS);
    neighbour = await hostedPython(fixture("holding.py"), launchOf, LIMITS);
  }, 300_000);
  afterAll(async () => {
    await hosting?.[Symbol.asyncDispose]();
    await neighbour?.[Symbol.asyncDispose]();
  });

  it.each(WAYS)("%s is refused, or loses its worker", async (what, expected) => {
    await expect.poll(() => hosting.call("say"), { timeout: 20_000 }).toBe("still here");
    const taskId = await hosting.submit("hold", { what });
    const startedMs = performance.now();
    const said = async () => {
      const { returned, failure, status } = await hosting.hosted.tasks.get({ taskId });
      if (status === "success") {
        return (await hosting.ended(taskId)).value;
      }
      return (returned[0]?.failure ?? failure)?.message;
    };
    await expect
      .poll(said, { timeout: 3 * END_WITHIN_MS, interval: 20 })
      .toEqual(typeof expected === "string" ? expected : expect.stringMatching(expected));
    expect(performance.now() - startedMs).toBeLessThan(END_WITHIN_MS);
    await hosting.hosted.queue.cancel({ taskId }, true).catch(() => {
      // It has ended.
    });
    expect(await neighbour.call("say")).toBe("still here");
  });
}
