/**
 * The GPUs of this machine by their device files (NVIDIA's driver). A sandbox has none of them
 * but those that its deployment is given, each bound by its name. Nothing here bounds the memory
 * of a GPU: workers that share one share it whole.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";

const GPU = /^nvidia(\d+)$/;
/** What programs open besides the GPU itself: its control, and its unified memory. */
const SHARED = ["nvidiactl", "nvidia-uvm"];

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
