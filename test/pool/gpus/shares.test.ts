import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Gpu, GpuProcess, Gpus } from "../../../src/pool/gpus/gpus.ts";
import { type GpuGrant, GpuLedger } from "../../../src/pool/gpus/ledger.ts";

const GIB = 1024 ** 3;
const GPU: Gpu = {
  ...{ index: 0, uuid: "GPU-0", name: "NVIDIA H100", minor: 0 },
  ...{ memoryBytes: 80 * GIB, usedBytes: 0 },
};
const OF = { organization: "acme", deployment: "a" };
const HALF = { count: 1, part: 0.5 };

let processes: GpuProcess[] | undefined;
let look: () => void;
let gpus: Gpus;
let untold: number;
let ledger: GpuLedger;
let kills: string[];
beforeEach(() => {
  processes = [];
  untold = 0;
  kills = [];
  gpus = {
    list: [GPU],
    get processes() {
      return processes;
    },
    onLook: (listener) => {
      look = listener;
    },
  };
  ledger = new GpuLedger(gpus, {
    onUntold: () => {
      untold += 1;
    },
  });
});

const uses = (pid: number | undefined, gib: number | undefined): GpuProcess => ({
  ...{ pid: pid ?? 0, gpu: "GPU-0" },
  bytes: gib === undefined ? undefined : gib * GIB,
});

/** A worker with this process. */
const workerOf = (pid: number | undefined) => ({
  pid,
  kill: (reason: string, cause: string) => void kills.push(`${cause}: ${reason}`),
});

describe.skipIf(process.platform !== "linux")("a worker with a share of a GPU", () => {
  let shell: ChildProcess;
  /** A process that the worker has started. */
  let child: number;
  beforeEach(async () => {
    shell = spawn("sh", ["-c", "sleep 60 & echo $!; wait"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    child = Number(await once(shell.stdout as NonNullable<ChildProcess["stdout"]>, "data"));
  });
  afterEach(() => {
    shell.kill("SIGKILL");
    process.kill(child, "SIGKILL");
  });

  it("is ended when all of its processes used more at two looks in a row", () => {
    ledger.hold(ledger.take(HALF, OF) as GpuGrant, workerOf(shell.pid));
    processes = [uses(shell.pid, 30), uses(child, 15)];
    look();
    expect(kills).toEqual([]);
    look();
    expect(kills).toEqual([
      "gpu_memory: out of GPU memory: it used 46080 MiB of 40960 MiB of GPU 0 (NVIDIA H100), which it shares (gpus, gpu_memory)",
    ]);
  });

  it("is not for a moment, nor for what a context of CUDA takes beside it, nor for what others use", () => {
    const grant = ledger.take(HALF, OF) as GpuGrant;
    ledger.hold(grant, workerOf(shell.pid));
    for (const gib of [50, 40, 50, 43.9, 50]) {
      processes = [uses(shell.pid, gib), uses(process.pid, 60)];
      look();
    }
    expect(kills).toEqual([]);
    ledger.give(grant);
    look();
    look();
    expect(kills).toEqual([]);
  });

  it("has no limit where it has the GPU whole, and is not held where nothing can be told, which is said once", () => {
    const whole = ledger.take({ count: 1 }, OF) as GpuGrant;
    ledger.hold(whole, workerOf(shell.pid));
    processes = undefined;
    look();
    expect(untold).toBe(0);
    ledger.give(whole);
    ledger.hold(ledger.take(HALF, OF) as GpuGrant, workerOf(shell.pid));
    ledger.hold(ledger.take(HALF, OF) as GpuGrant, workerOf(shell.pid));
    look();
    look();
    processes = [uses(shell.pid, undefined)];
    look();
    expect(untold).toBe(1);
    expect(kills).toEqual([]);
  });
});

describe.skipIf(process.platform !== "linux")(
  "a GPU that a program beside the platform uses",
  () => {
    it("is given to nobody whole, and what is left of it in shares", () => {
      // The parent of this process does not come from it.
      processes = [uses(process.ppid, 30)];
      look();
      expect(ledger.has({ count: 1 }, OF)).toBe(false);
      expect(ledger.shortage({ count: 1 }, OF)).toBe(
        "a worker needs 1 GPU, and GPU 0 (NVIDIA H100) is free, and other programs on this machine use 30 GiB of it",
      );
      expect(ledger.use[0]?.leftOut).toBe("other programs on this machine use 30 GiB of it");
      expect(ledger.take({ count: 1, memoryBytes: 51 * GIB }, OF)).toBeUndefined();
      expect(ledger.take({ count: 1, memoryBytes: 50 * GIB }, OF)).toBeDefined();
      expect(ledger.use[0]?.leftOut).toBeUndefined();
      processes = [];
      look();
      expect(ledger.take({ count: 1, memoryBytes: 30 * GIB }, OF)).toBeDefined();
    });

    it("is free where that only watches it, has ended, or comes from the platform", () => {
      const gone = 4_194_303;
      processes = [uses(process.ppid, 0.3), uses(process.pid, 70), uses(gone, 70)];
      look();
      expect(ledger.has({ count: 1 }, OF)).toBe(true);
    });
  },
);
