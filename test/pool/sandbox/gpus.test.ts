import {
  accessSync,
  constants,
  mkdirSync,
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
import { deviceFiles, driverLibraries, gpuEnvironment } from "../../../src/pool/sandbox/gpus.ts";
import { spawnSandboxed } from "../../../src/pool/sandbox/spawn.ts";
import { kernelSandbox, skipped } from "./available.ts";

const GIB = 1024 ** 3;

let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "tessera-gpus-")));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

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

describe("what a worker has of the GPUs of its machine", () => {
  const [FIRST, SECOND] = [
    { index: 0, uuid: "GPU-a", minor: 1, memoryBytes: 80 * GIB },
    { index: 1, uuid: "GPU-b", minor: 0, memoryBytes: 80 * GIB },
  ] as const;

  test("are the device files of these, and those that all of them share", () => {
    for (const name of ["nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia-modeset"]) {
      writeFileSync(join(folder, name), "");
    }
    const files = (...gpus: Parameters<typeof deviceFiles>[0]) =>
      deviceFiles(gpus, folder).map((path) => path.slice(folder.length + 1));
    expect(files(FIRST)).toEqual(["nvidia-uvm", "nvidia1", "nvidiactl"]);
    expect(files(FIRST, SECOND)).toEqual(["nvidia-uvm", "nvidia0", "nvidia1", "nvidiactl"]);
    expect(files()).toEqual([]);
    expect(files({ minor: 7 })).toEqual([]);
  });

  test("are told to libraries by the numbers that they have for these", () => {
    expect(gpuEnvironment([SECOND], { hasOthers: true })).toEqual({
      CUDA_VISIBLE_DEVICES: "1",
      CUDA_DEVICE_ORDER: "PCI_BUS_ID",
      NVIDIA_VISIBLE_DEVICES: "GPU-b",
    });
    const inside = gpuEnvironment([SECOND], { hasOthers: false });
    expect(inside).toMatchObject({ CUDA_VISIBLE_DEVICES: "0", NVIDIA_VISIBLE_DEVICES: "GPU-b" });
    expect(gpuEnvironment([], { hasOthers: true })).toEqual({ CUDA_VISIBLE_DEVICES: "" });
  });

  test("are of a slice the files that open it, and no others of its GPU, and its name", () => {
    mkdirSync(join(folder, "nvidia-caps"));
    for (const name of ["nvidia1", "nvidia-caps/nvidia-cap1", "nvidia-caps/nvidia-cap30"]) {
      writeFileSync(join(folder, name), "");
    }
    const slice = { index: 0, gpu: "GPU-a", capabilities: [30, 31] };
    const own = { ...FIRST, uuid: "MIG-a", slice };
    expect(deviceFiles([own], folder)).toEqual(
      ["nvidia-caps/nvidia-cap30", "nvidia1"].map((name) => join(folder, name)),
    );
    for (const hasOthers of [true, false]) {
      expect(gpuEnvironment([own], { hasOthers })).toMatchObject({
        CUDA_VISIBLE_DEVICES: "MIG-a",
        NVIDIA_VISIBLE_DEVICES: "MIG-a",
      });
    }
  });

  test("are told to libraries with the memory that they may take of a share, beside CUDA's own", () => {
    const share = { part: 0.5, bytes: 40 * GIB };
    const told = gpuEnvironment(
      [
        { ...FIRST, share },
        { ...SECOND, share },
      ],
      { hasOthers: false },
    );
    expect(told).toMatchObject({
      TESSERA_GPU_MEMORY_BYTES: String(39.5 * GIB),
      TESSERA_GPU_MEMORY_FRACTION: "0.4937",
      CUPY_GPU_MEMORY_LIMIT: String(39.5 * GIB),
      XLA_PYTHON_CLIENT_MEM_FRACTION: "0.4937",
    });
    const small = { part: 0.005, bytes: 0.4 * GIB };
    expect(gpuEnvironment([{ ...FIRST, share: small }], { hasOthers: false })).toMatchObject({
      TESSERA_GPU_MEMORY_FRACTION: "0.0025",
    });
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
