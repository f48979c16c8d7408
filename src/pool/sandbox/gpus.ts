/**
 * What a sandbox has of the GPUs of this machine (NVIDIA's driver): the device files of those that
 * its worker was given, each bound by its name, and no others. Nothing here bounds the memory of a
 * GPU: workers that share one share it whole.
 *
 * The driver brings libraries that programs load by their names, such as `libcuda.so.1`. Where it
 * was installed by a package, they are beside the others of the machine; container engines put
 * them into folders of their own.
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Gpu } from "../gpus/gpus.ts";

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

/** The libraries of the driver, in one folder; undefined where there is none. */
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

/** The device files of these GPUs, as far as they are there; empty without any. */
export function deviceFiles(gpus: readonly Pick<Gpu, "minor">[], folder = "/dev"): string[] {
  const own = gpus.map(({ minor }) => join(folder, `nvidia${minor}`)).filter(existsSync);
  const shared = SHARED.map((name) => join(folder, name)).filter(existsSync);
  return own.length === 0 ? [] : [...own, ...shared].toSorted();
}

/**
 * The variables by which libraries find the GPUs of a worker, and no others. CUDA numbers those that
 * it can open, so that where a sandbox has the files of these alone, they are the first ones.
 * Numbers rather than UUIDs: programs such as vLLM read them so.
 */
export function gpuEnvironment(
  gpus: readonly Pick<Gpu, "index" | "uuid">[],
  { hasOthers }: { readonly hasOthers: boolean },
): { readonly [name: string]: string } {
  const numbers = gpus.map(({ index }, position) => (hasOthers ? index : position));
  return {
    CUDA_VISIBLE_DEVICES: numbers.join(","),
    ...(gpus.length > 0 && {
      CUDA_DEVICE_ORDER: "PCI_BUS_ID",
      NVIDIA_VISIBLE_DEVICES: gpus.map(({ uuid }) => uuid).join(","),
    }),
  };
}
