import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { LimitWatch } from "../../src/pool/limit-watch.ts";
import { DEFAULT_LIMITS } from "../../src/pool/limits.ts";
import { cpuTimeMs } from "../../src/pool/usage.ts";

let scratchFolder: string;
let child: ChildProcess;
let looks: number;
let kills: string[];
let watch: LimitWatch;

/** A program that sleeps, and uses 50 ms of processor time at each byte that it reads. */
const SLEEPER = `process.stdin.on("data", () => {
  for (const before = process.cpuUsage(); process.cpuUsage(before).user < 50_000; );
  process.stdout.write("done");
}); process.stdout.write("up");`;

beforeEach(async () => {
  scratchFolder = mkdtempSync(join(tmpdir(), "tessera-watch-test-"));
  child = spawn(process.execPath, ["-e", SLEEPER], { stdio: ["pipe", "pipe", "ignore"] });
  await once(child.stdout ?? child, "data");
  await settled();
  looks = 0;
  kills = [];
  vi.useFakeTimers();
  watch = new LimitWatch({
    pid: () => {
      looks += 1;
      return child.pid;
    },
    scratchFolder,
    limits: DEFAULT_LIMITS,
    kill: (reason) => kills.push(reason),
  });
});

afterEach(() => {
  watch[Symbol.dispose]();
  vi.useRealTimers();
  child.kill("SIGKILL");
  rmSync(scratchFolder, { recursive: true });
});

/** Resolves when Node's own start has used its last processor time. */
async function settled(): Promise<void> {
  const pid = child.pid ?? 0;
  let before: number | undefined;
  await vi.waitFor(
    () => {
      const now = cpuTimeMs(pid);
      const same = now === before;
      before = now;
      expect(same).toBe(true);
    },
    { interval: 200, timeout: 10_000 },
  );
}

/** The looks within a time. */
function looksIn(ms: number): number {
  const before = looks;
  vi.advanceTimersByTime(ms);
  return looks - before;
}

test("a worker is looked at ten times a second until it has been idle for one, then every two seconds", () => {
  expect(looksIn(1_000)).toBe(11);
  expect(looksIn(20_000)).toBe(10);
  expect(kills).toEqual([]);
});

test("an idle worker that gets something to do is looked at closely at once", () => {
  looksIn(5_000);
  watch.wake();
  expect(looksIn(1_000)).toBe(10);
  expect(looksIn(4_000)).toBe(2);
});

test("an idle worker that works by itself is found by its next look", async () => {
  looksIn(5_000);
  child.stdin?.write("x");
  await once(child.stdout ?? child, "data");
  looksIn(2_000);
  expect(watch.lastCpuMs).toBe(cpuTimeMs(child.pid ?? 0));
  expect(looksIn(900)).toBe(9);
});

test("nothing is read of a worker whose watch has ended", () => {
  looksIn(500);
  watch[Symbol.dispose]();
  watch.wake();
  expect(looksIn(10_000)).toBe(0);
});

test("a worker that works ends for what is wrong with the cache of its deployment", async () => {
  vi.useRealTimers();
  const killed = Promise.withResolvers<string>();
  using _ = new LimitWatch({
    pid: () => child.pid,
    scratchFolder,
    cache: {
      path: join(scratchFolder, "cache"),
      maxBytes: 1_024,
      use: () => new DisposableStack(),
      fault: () => "too much",
    },
    limits: DEFAULT_LIMITS,
    kill: killed.resolve,
  });
  child.stdin?.write("x");
  expect(await killed.promise).toBe("too much");
});

test.skipIf(process.platform !== "linux")(
  "a worker that takes back that it is ended first is told again",
  async () => {
    vi.useRealTimers();
    const score = () => readFileSync(`/proc/${child.pid}/oom_score_adj`, "latin1").trim();
    using _ = new LimitWatch({
      pid: () => child.pid,
      scratchFolder,
      limits: DEFAULT_LIMITS,
      kill: (reason) => expect.unreachable(reason),
    });
    await expect.poll(score).toBe("1000");
    writeFileSync(`/proc/${child.pid}/oom_score_adj`, "500");
    await expect
      .poll(
        () => {
          child.stdin?.write("x");
          return score();
        },
        { timeout: 10_000 },
      )
      .toBe("1000");
  },
);

test.skipIf(process.platform !== "linux")(
  "the memory of a process that the worker may reach into counts as its own",
  async () => {
    vi.useRealTimers();
    const program = `globalThis.held = Buffer.alloc(150 * 1024 ** 2, 1); console.log("up"); setInterval(() => {}, 1e6);`;
    const other = spawn(process.execPath, ["-e", program], { stdio: ["ignore", "pipe", "ignore"] });
    await once(other.stdout ?? other, "data");
    const killed = Promise.withResolvers<string>();
    const limits = { ...DEFAULT_LIMITS, memoryBytes: 150 * 1024 ** 2 };
    using _ = new LimitWatch({
      ...{ pid: () => child.pid, first: () => other.pid, scratchFolder, limits },
      kill: killed.resolve,
    });
    expect(await killed.promise).toMatch(/^out of memory: it used \d+ MiB of 150 MiB$/);
    other.kill("SIGKILL");
  },
);
