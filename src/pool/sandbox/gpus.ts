/**
 * The GPUs of this machine by their device files (NVIDIA's driver). A sandbox has none of them
 * but those that its deployment is given, each bound by its name. Nothing here bounds the memory
 * of a GPU: workers that share one share it whole.
 *
 * The driver brings libraries that programs load by their names, such as `libcuda.so.1`. Where it
 * was installed by a package, they are beside the others of the machine; container engines put
 * them into folders of their own.
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

const GPU = /^nvidia(\d+)$/;
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

/** The device files for all GPUs of the machine; empty without any. */
export function gpuDevices(folder = "/dev"): readonly string[] {
  const names = readdirSync(folder);
  const gpus = names.filter((name) => GPU.test(name));
  if (gpus.length === 0) {
    return [];
  }
  return [...gpus, ...SHARED.filter((name) => names.includes(name))]
    .map((name) => join(folder, name))
    .toSorted();
}

/** The numbers of the GPUs among these devices, as `CUDA_VISIBLE_DEVICES` lists them. */
export function visibleGpus(devices: readonly string[]): string {
  const numbers = devices.flatMap((path) => {
    const [, number] = GPU.exec(path.slice(path.lastIndexOf("/") + 1)) ?? [];
    return number === undefined ? [] : [Number(number)];
  });
  return numbers.toSorted((a, b) => a - b).join(",");
}
