/**
 * What a sandbox has of the GPUs of this machine (NVIDIA's driver): the device files of those that
 * its worker was given, each bound by its name, and no others. A slice (MIG) is opened by files of its
 * own beside that of its GPU. Nothing here bounds the memory of a GPU: workers that share one are
 * told their share by variables, and `gpus/shares.ts` holds them to it.
 *
 * The driver brings libraries that programs load by their names, such as `libcuda.so.1`. Where it
 * was installed by a package, they are beside the others of the machine; container engines put
 * them into folders of their own.
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Gpu, WorkerGpu } from "../gpus/gpus.ts";

/** What programs open besides the GPU itself: its control, and its unified memory. */
const SHARED = ["nvidiactl", "nvidia-uvm"];

/** Where the libraries of the driver may be, in the order in which they are looked for. */
const DRIVER_FOLDERS = [
  "/usr/local/nvidia/lib64",
  "/usr/lib/x86_64-linux-gnu",
  "/usr/lib/aarch64-linux-gnu",
  "/usr/lib64",
  "/usr/lib",
  "/usr/lib/wsl/lib",
];
const DRIVER = "libcuda.so.1";
const DRIVER_LIBRARY = /^lib(?:cuda|cudadebugger|nvcuvid|nvidia-[\w-]+|nvoptix)\.so(?:\.[\d.]+)?$/;

/** The libraries of the driver, in one folder; undefined without a driver. */
export function driverLibraries(
  folders: readonly string[] = DRIVER_FOLDERS,
): { readonly folder: string; readonly files: readonly string[] } | undefined {
  const folder = folders.find((each) => existsSync(join(each, DRIVER)));
  const names = folder === undefined ? [] : readdirSync(folder);
  return folder === undefined
    ? undefined
    : {
        folder,
        files: names.filter((name) => DRIVER_LIBRARY.test(name)).map((name) => join(folder, name)),
      };
}

/** Memory of a share that is left for a CUDA context: libraries do not count it, so they are given the rest alone. */
const CUDA_CONTEXT_BYTES = 512 * 1024 ** 2;
/** Least part of a share that libraries are told. */
const MIN_TOLD_PART = 0.5;

/** The device files of these GPUs, as far as they are there; empty without any. */
export function deviceFiles(
  gpus: readonly Pick<Gpu, "minor" | "slice">[],
  folder = "/dev",
): string[] {
  const own = gpus
    .flatMap(({ minor, slice }) => [
      `nvidia${minor}`,
      ...(slice?.capabilities ?? []).map((number) => `nvidia-caps/nvidia-cap${number}`),
    ])
    .map((name) => join(folder, name))
    .filter(existsSync);
  const shared = SHARED.map((name) => join(folder, name)).filter(existsSync);
  return own.length === 0 ? [] : [...new Set([...own, ...shared])].toSorted();
}

/**
 * The variables by which libraries find the GPUs of a worker, and no others. CUDA numbers those that
 * it can open, so that where a sandbox has the files of these alone, they are the first ones.
 * Numbers rather than UUIDs: programs such as vLLM read them so. A slice has no number.
 */
export function gpuEnvironment(
  gpus: readonly Pick<WorkerGpu, "index" | "uuid" | "slice" | "share" | "memoryBytes">[],
  { hasOthers }: { readonly hasOthers: boolean },
): { readonly [name: string]: string } {
  const names = gpus.map(({ index, uuid, slice }, position) =>
    slice === undefined ? (hasOthers ? index : position) : uuid,
  );
  return {
    CUDA_VISIBLE_DEVICES: names.join(","),
    ...(gpus.length > 0 && {
      CUDA_DEVICE_ORDER: "PCI_BUS_ID",
      NVIDIA_VISIBLE_DEVICES: gpus.map(({ uuid }) => uuid).join(","),
    }),
    ...shareEnvironment(gpus),
  };
}

/** The variables by which libraries keep to a share; of several GPUs the least one holds. */
function shareEnvironment(gpus: readonly Pick<WorkerGpu, "share" | "memoryBytes">[]): {
  readonly [name: string]: string;
} {
  const told = gpus.flatMap(({ share, memoryBytes }) => {
    const bytes = share && Math.max(share.bytes * MIN_TOLD_PART, share.bytes - CUDA_CONTEXT_BYTES);
    return bytes === undefined ? [] : [{ bytes, part: bytes / memoryBytes }];
  });
  if (told.length === 0) {
    return {};
  }
  const bytes = String(Math.floor(Math.min(...told.map((each) => each.bytes))));
  const part = String(Math.floor(Math.min(...told.map((each) => each.part)) * 10_000) / 10_000);
  return {
    TESSERA_GPU_MEMORY_BYTES: bytes,
    TESSERA_GPU_MEMORY_FRACTION: part,
    CUPY_GPU_MEMORY_LIMIT: bytes,
    // The name that both older and newer JAX reads.
    XLA_PYTHON_CLIENT_MEM_FRACTION: part,
  };
}
