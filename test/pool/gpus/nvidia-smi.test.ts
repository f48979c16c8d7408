import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Gpus } from "../../../src/pool/gpus/gpus.ts";
import { NvidiaSmi, readGpus, readProcesses } from "../../../src/pool/gpus/nvidia-smi.ts";
import { CUT, LIST, XML } from "./mig-answers.ts";

/** What a machine with an H200 wrote (driver 580.159), and the driver beside it. */
const H200 =
  "0, GPU-96f2ad0b-11ce-2619-4bb2-36eca0d9520f, NVIDIA H200, 143771, 0, Disabled, 00000000:00:06.0\n";
const INFORMATION = `Model: \t\t NVIDIA H200
IRQ:   \t\t 41
GPU UUID: \t GPU-96f2ad0b-11ce-2619-4bb2-36eca0d9520f
Bus Location: \t 0000:00:06.0
Device Minor: \t 3
GPU Excluded:\t No
`;
const TWO = `1, GPU-b, NVIDIA L4, 23034, 512, Disabled, 00000000:AF:00.0
0, GPU-a, NVIDIA A100-SXM4-80GB, 81920, 81000, Enabled, 00000000:00:06.0
`;
const MIB = 1024 ** 2;

let folder: string;
let warnings: string[];
let opened: AsyncDisposable | undefined;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "tessera-smi-")));
  warnings = [];
  opened = undefined;
});
afterEach(async () => {
  await opened?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

/** A program of this name that runs these lines of a shell when it is asked for the GPUs. */
function says(lines: string, others = "''"): void {
  const path = join(folder, "nvidia-smi");
  writeFileSync(path, `#!/bin/sh\ncase "$1" in --query-gpu*)\n${lines}\n;; ${others} ) ;; esac\n`);
  chmodSync(path, 0o755);
}

async function open(timeoutMs = 5_000, hasMachinePids = true): Promise<Gpus> {
  const warn = (_: object, message: string): void => void warnings.push(message);
  const log = { debug: warn, info: warn, warn, error: warn };
  const found = await NvidiaSmi.open({
    ...{ searchPath: folder, log, intervalMs: 20, timeoutMs },
    ...{ driverFolder: join(folder, "driver"), hasMachinePids },
  });
  opened = found;
  return found;
}

describe("the GPUs of a machine", () => {
  it("have their names, their memory, and the number of their device file", () => {
    const driver = join(folder, "driver", "nvidia", "gpus", "0000:00:06.0");
    mkdirSync(driver, { recursive: true });
    writeFileSync(join(driver, "information"), INFORMATION);
    const uuid = "GPU-96f2ad0b-11ce-2619-4bb2-36eca0d9520f";
    expect(readGpus(H200, join(folder, "driver"))).toEqual([
      {
        gpu: {
          ...{ index: 0, uuid, name: "NVIDIA H200", minor: 3 },
          ...{ memoryBytes: 143_771 * MIB, usedBytes: 0 },
        },
        isCut: false,
      },
    ]);
    expect(readGpus(TWO, "/nowhere")).toMatchObject([
      { gpu: { index: 0, minor: 0, name: "NVIDIA A100-SXM4-80GB" }, isCut: true },
      { gpu: { index: 1, minor: 1, usedBytes: 512 * MIB }, isCut: false },
    ]);
    expect(() => readGpus("No devices were found\n", "/nowhere")).toThrow("No devices were found");
    for (const length of [20, 50, 65, 75]) {
      expect(() => readGpus(H200.slice(0, length), "/nowhere")).toThrow("it wrote");
    }
  });

  it("have programs on them, with what they use, where the driver tells", () => {
    expect(readProcesses("GPU-a, 4711, 20480\nGPU-b, 4712, [N/A]\n")).toEqual([
      { gpu: "GPU-a", pid: 4711, bytes: 20_480 * MIB },
      { gpu: "GPU-b", pid: 4712, bytes: undefined },
    ]);
    expect(readProcesses("")).toEqual([]);
    expect(() => readProcesses("GPU-a, 47")).toThrow("it wrote");
  });

  it("are none where nvidia-smi is not installed, and none where it finds none", async () => {
    expect((await open()).list).toEqual([]);
    says("exit 0");
    expect((await open()).list).toEqual([]);
    expect(warnings).toEqual([]);
  });

  it("are looked at again and again", async () => {
    const seen = join(folder, "seen");
    says(
      `if [ -e ${seen} ]; then printf '${TWO.replace("Enabled", "Disabled")}'; else touch ${seen}; printf '${H200}'; fi`,
    );
    const gpus = await open();
    let changes = 0;
    gpus.onChange?.(() => {
      changes += 1;
    });
    expect(gpus.list).toHaveLength(1);
    await expect.poll(() => gpus.list.map(({ uuid }) => uuid)).toEqual(["GPU-a", "GPU-b"]);
    expect(changes).toBe(1);
  });

  it("stay as they were last seen while nvidia-smi fails, with a warning", async () => {
    const seen = join(folder, "seen");
    const fails = "echo 'Failed to initialize NVML' >&2; exit 9";
    says(`if [ -e ${seen} ]; then ${fails}; else touch ${seen}; printf '${H200}'; fi`);
    const gpus = await open();
    await expect.poll(() => warnings.length).toBeGreaterThan(0);
    expect(warnings[0]).toContain("nvidia-smi failed");
    expect(gpus.list).toHaveLength(1);
  });

  it("stay so while it hangs, which nothing waits for", async () => {
    const seen = join(folder, "seen");
    says(`if [ -e ${seen} ]; then sleep 60; else touch ${seen}; printf '${H200}'; fi`);
    const gpus = await open(100);
    await expect.poll(() => warnings.length, { timeout: 5_000 }).toBeGreaterThan(0);
    expect(gpus.list).toHaveLength(1);
  });

  it("are none for a machine whose nvidia-smi hangs at the start, which starts all the same", async () => {
    says("sleep 60");
    expect((await open(100)).list).toEqual([]);
    expect(warnings).toHaveLength(1);
  });

  it("are as they were while it writes without end, which is not kept", async () => {
    const seen = join(folder, "seen");
    says(`if [ -e ${seen} ]; then yes '${H200.trim()}'; else touch ${seen}; printf '${H200}'; fi`);
    const gpus = await open();
    await expect.poll(() => warnings.length, { timeout: 5_000 }).toBeGreaterThan(0);
    expect(warnings[0]).toContain("nvidia-smi failed");
    expect(gpus.list).toHaveLength(1);
  });

  it("have programs that are told again at each look, and are unknown while that fails", async () => {
    const apps = join(folder, "apps");
    writeFileSync(apps, "GPU-b, 4711, 512\n");
    says(`printf '${TWO}'`, `--query-compute-apps*) cat ${apps};; ''`);
    const gpus = await open();
    expect(gpus.processes).toEqual([{ gpu: "GPU-b", pid: 4711, bytes: 512 * MIB }]);
    let looks = 0;
    gpus.onLook?.(() => {
      looks += 1;
    });
    rmSync(apps);
    await expect.poll(() => gpus.processes).toBeUndefined();
    expect(gpus.list).not.toEqual([]);
    expect(warnings).toContain("nvidia-smi failed: what programs use of the GPUs is not known");
    await expect.poll(() => looks).toBeGreaterThan(1);
  });

  it("have unknown programs where process ids are not those of the machine", async () => {
    says(`printf '${H200}'`, "--query-compute-apps*) echo 'GPU-a, 4711, 512';; ''");
    expect((await open(5_000, false)).processes).toBeUndefined();
  });

  it("are listed by their slices, and as these were last seen while they cannot be read", async () => {
    const slices = join(folder, "slices");
    writeFileSync(slices, LIST);
    writeFileSync(join(folder, "xml"), XML);
    says(`printf '${CUT}'`, `-L) cat ${slices};; -q) cat ${folder}/xml;; ''`);
    const gpus = await open();
    const uuids = () => gpus.list.map(({ uuid }) => uuid);
    expect(uuids()).toEqual(["MIG-a", "MIG-b", "MIG-c", "GPU-two"]);
    writeFileSync(slices, "");
    await expect.poll(() => warnings.length).toBeGreaterThan(0);
    expect(uuids()).toEqual(["MIG-a", "MIG-b", "MIG-c", "GPU-two"]);
  });
});
