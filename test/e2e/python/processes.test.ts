/** What a service may do that may start processes, and how all of them are held. */

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchersFor } from "../../../src/pool/launchers.ts";
import { leftOut } from "../../needed.ts";
import { kernelSandbox, skipped as noSandbox } from "../../pool/sandbox/available.ts";
import { emptyImage } from "../../pool/sandbox/empty-image.ts";
import { pythonMissing } from "../clients/python-environment.ts";
import type { Hosting, RevisionSettings } from "../deployments/hosting.ts";
import { fixture, hostedPython } from "./hosted.ts";

const skipped = noSandbox || leftOut(pythonMissing);
const MEBIBYTE = 1024 ** 2;
const LIMITS = { memoryBytes: 256 * MEBIBYTE, processes: 8 };

const hosted = (settings: RevisionSettings): Promise<Hosting> =>
  hostedPython(fixture("processes.py"), launchersFor(kernelSandbox()), settings);

const attempt = (hosting: Hosting, what: string): Promise<unknown> =>
  hosting.call("attempt", { what }).catch((err: unknown) => String(err));

/** The processes of this machine with a word in their command lines. */
function running(mark: string): string[] {
  return readdirSync("/proc").filter((pid) => {
    const path = `/proc/${pid}/cmdline`;
    try {
      return /^\d+$/.test(pid) && existsSync(path) && readFileSync(path, "utf8").includes(mark);
    } catch {
      return false; // It has ended.
    }
  });
}

describe.skipIf(skipped).each([
  ["with the machine's libraries", false],
  ["in an image", true],
])(`a service that may start processes %s${skipped}`, (_, isInImage) => {
  let folder: string;
  let hosting: Hosting;
  let neighbour: Hosting;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "tessera-processes-"));
    const image = isInImage ? { image: await emptyImage(join(folder, "image")) } : {};
    hosting = await hosted({ ...LIMITS, ...image });
    neighbour = await hosted({});
  }, 300_000);
  afterAll(async () => {
    await hosting?.[Symbol.asyncDispose]();
    await neighbour?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  const again = () =>
    expect.poll(() => hosting.call("say").catch(String), { timeout: 20_000 }).toBe("still here");

  it.each([
    ["run a program", "42"],
    ["a pool of four", "[0, 1, 4, 9, 16]"],
    ["a child that is told to end", String(-constants.signals.SIGTERM)],
    ["an executor", "[0, 1, 4]"],
    ["shared memory", "hello"],
    // 100 MiB that five processes have are no 500.
    ["children that share weights", "read"],
  ])("can do what libraries do: %s", async (what, expected) => {
    await again();
    expect(await attempt(hosting, what)).toBe(expected);
  });

  it.each([
    ["leave the sandbox's users", /Operation not permitted|Read-only file system/],
    ["signal the first process", /None|Operation not permitted/],
  ])("gets no further than without: %s", async (what, expected) => {
    await again();
    expect(await attempt(hosting, what)).toMatch(expected);
    expect(await hosting.call("say")).toBe("still here");
  });

  it("loses its worker for a bomb at once, and its neighbour does not notice", async () => {
    await again();
    const startedMs = performance.now();
    const bomb = attempt(hosting, "a bomb");
    const waits: number[] = [];
    let isOver = false;
    const said = bomb.then((said) => {
      isOver = true;
      return said;
    });
    while (!isOver) {
      const askedMs = performance.now();
      expect(await neighbour.call("say")).toBe("still here");
      waits.push(performance.now() - askedMs);
    }
    expect(await said).toMatch(/out of processes: it started \d+, and at most 8 may run/);
    // Less than a second where nothing else runs; other tests do.
    expect(performance.now() - startedMs).toBeLessThan(5_000);
    expect(Math.max(...waits)).toBeLessThan(2_000);
  });

  it.each([
    ["children that hold memory", /out of memory: it used \d+ MiB of 256 MiB/],
    ["fill the shared folder", "No space left on device"],
  ])("is held to its memory with all of them: %s", async (what, expected) => {
    await again();
    expect(await attempt(hosting, what)).toEqual(expect.stringMatching(expected));
  });

  it("leaves nothing behind when its worker ends, whatever ignores its end", async () => {
    await again();
    const mark = `left-by-${process.pid}`;
    await hosting.call("leave", { mark });
    // The kernel has begun to start it, and gives it its command line a moment later.
    await expect.poll(() => running(mark)).toHaveLength(1);
    // It outlives its call, not its worker.
    expect(await hosting.call("say")).toBe("still here");
    expect(running(mark)).toHaveLength(1);
    await hosting.call("end").catch(() => undefined);
    await expect.poll(() => running(mark)).toEqual([]);
  });
});

describe.skipIf(skipped)(`a service with half a processor and four children${skipped}`, () => {
  it("gives them no more than its own", async () => {
    await using hosting = await hosted({ ...LIMITS, cpus: 0.5 });
    const startedMs = performance.now();
    const seconds = (await hosting.call("burn_together", { count: 4, seconds: 1 })) as number;
    const spentMs = performance.now() - startedMs;
    expect(seconds).toBeGreaterThan(0.5);
    // With what it had saved up.
    expect(seconds * 1_000).toBeLessThan(0.5 * spentMs + 1_000);
  }, 120_000);
});

describe.skipIf(skipped)(`a service whose children nobody waits for${skipped}`, () => {
  it("pays for them all the same", async () => {
    await using hosting = await hosted({ ...LIMITS, cpus: 0.5 });
    const seconds = (await hosting.call("burn_unseen", { count: 6, seconds: 0.6 })) as number;
    // 3.6 s of a processor, of which half a second and a little more was saved up.
    expect(seconds).toBeGreaterThan(5);
  }, 120_000);
});

describe.skipIf(skipped)(`a service that may start no processes${skipped}`, () => {
  let hosting: Hosting;
  beforeAll(async () => {
    hosting = await hosted({});
  }, 300_000);
  afterAll(() => hosting?.[Symbol.asyncDispose]());

  it.each(["run a program", "a pool of four"])("is told of the setting: %s", async (what) => {
    expect(await attempt(hosting, what)).toMatch(
      /(?:Operation not permitted|Read-only file system).*: a worker starts processes only if .*--processes 8/,
    );
  });
});

describe.skipIf(skipped)(`a service that may start fewer than it wants${skipped}`, () => {
  it("loses its worker, which says how many it may have", async () => {
    await using hosting = await hosted({ ...LIMITS, processes: 2 });
    expect(await attempt(hosting, "five children")).toMatch(
      /out of processes: it started [345], and at most 2 may run at a time \(processes in its code/,
    );
  }, 120_000);
});
