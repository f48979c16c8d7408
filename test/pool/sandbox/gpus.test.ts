import {
  accessSync,
  constants,
  mkdtempSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { pythonProgram } from "../../../src/pool/launch/python.ts";
import { DEFAULT_LIMITS } from "../../../src/pool/limits.ts";
import { driverLibraries, gpuDevices, visibleGpus } from "../../../src/pool/sandbox/gpus.ts";
import { spawnSandboxed } from "../../../src/pool/sandbox/spawn.ts";
import { kernelSandbox, skipped } from "./available.ts";

let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "tessera-gpus-")));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const machineWith = (...names: string[]): readonly string[] => {
  for (const name of names) {
    writeFileSync(join(folder, name), "");
  }
  return gpuDevices(folder).map((path) => path.slice(folder.length + 1));
};

describe("the libraries of the driver", () => {
  test("are those of the first folder that has its own one, and no others of it", () => {
    const theirs = ["libcuda.so.1", "libcuda.so.580.95.05", "libnvidia-ml.so.1"];
    for (const name of [...theirs, "libc.so.6", "libssl.so.3", "nvidia.conf"]) {
      writeFileSync(join(folder, name), "");
    }
    const found = driverLibraries(["/nowhere", folder]);
    expect(found?.folder).toBe(folder);
    expect(found?.files.toSorted()).toEqual(theirs.map((name) => join(folder, name)));
    expect(driverLibraries(["/nowhere"])).toBeUndefined();
  });
});

describe("the GPUs of a machine", () => {
  test("are their device files and the two that all of them share, and nothing else", () => {
    const names = ["nvidia10", "nvidia2", "nvidia-uvm", "nvidiactl"];
    expect(machineWith(...names, "nvidia-modeset", "nvidia-caps", "mem", "kvm")).toEqual(
      names.toSorted(),
    );
    expect(visibleGpus(gpuDevices(folder))).toBe("2,10");
  });

  test("are none where the driver has no GPU", () => {
    expect(machineWith("nvidiactl", "null")).toEqual([]);
    expect(visibleGpus([])).toBe("");
  });

  test("are seen by libraries of a worker in Python as far as it is given them", () => {
    const visible = (devices?: readonly string[]) =>
      pythonProgram({ interpreter: "python3", env: {} })({
        rights: {
          read: [],
          write: [],
          addons: true,
          threads: true,
          processes: false,
          sqlite: true,
        },
        scratchFolder: folder,
        env: {},
        limits: DEFAULT_LIMITS,
        egress: undefined,
        devices,
      }).env.CUDA_VISIBLE_DEVICES;
    expect(visible(["/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidia1"])).toBe("0,1");
    expect(visible()).toBe("");
  });
});

/** Stands in for a GPU: a character device that this user may open. */
const DEVICE = ["/dev/fuse", "/dev/net/tun"].find((path) => {
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
    return true;
  } catch {
    return false;
  }
});

test.skipIf(skipped || DEVICE === undefined)(
  `a sandboxed program uses the devices that it is given, and sees no others${skipped}`,
  async () => {
    const device = DEVICE ?? "";
    const program = realpathSync(process.execPath);
    const found = async (devices: readonly string[]): Promise<unknown> => {
      const code = `
        const fs = require("node:fs");
        let rdev = null, opened = false;
        try { rdev = fs.statSync(${JSON.stringify(device)}).rdev; } catch {}
        try { fs.openSync(${JSON.stringify(device)}, "r+"); opened = true; } catch {}
        console.log(JSON.stringify({ rdev, opened, disks: fs.existsSync("/dev/loop0") }));`;
      const { bubblewrap, filter } = kernelSandbox();
      const { child } = spawnSandboxed({
        bubblewrap: [bubblewrap],
        filter: filter({ sharedMemory: true }),
        read: [program],
        writable: [folder],
        devices,
        program,
        args: ["-e", code],
        env: {},
      });
      return JSON.parse(child.stdout === null ? "" : await text(child.stdout));
    };
    expect(await found([device])).toEqual({
      rdev: statSync(device).rdev,
      opened: true,
      disks: false,
    });
    expect(await found([])).toEqual({ rdev: null, opened: false, disks: false });
  },
);
