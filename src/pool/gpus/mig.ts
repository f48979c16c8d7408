/**
 * The slices of GPUs that are cut (MIG), by NVIDIA's guide to it. `nvidia-smi -L` tells the name and
 * the profile of each, `nvidia-smi -q -x` its memory and the instances that it consists of, and
 * `/proc/driver/nvidia-caps/mig-minors` the files that open these, such as `gpu0/gi3/access 30` and
 * `gpu0/gi3/ci0/access 31`, by the number of the GPU's device file.
 *
 * The names of programs are in that XML, which any of them chooses. So only what stands before them is
 * read of each GPU, and XML with another number of GPUs than there are is refused.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Gpu } from "./gpus.ts";

const MEBIBYTE = 1024 ** 2;

interface SliceFacts {
  /** What `nvidia-smi -L` writes. */
  readonly names: string;
  /** What `nvidia-smi -q -x` writes. */
  readonly facts: string;
  readonly driverFolder: string;
}

/** Reads all slices, in the order of their GPUs. Throws for other text. */
export function readSlices(
  { names, facts, driverFolder }: SliceFacts,
  gpus: readonly { readonly gpu: Gpu; readonly isCut: boolean }[],
): Gpu[] {
  const named = readNames(names);
  const described = facts
    .split("<gpu id=")
    .slice(1)
    .map((text) => text.split("<processes>", 1)[0] ?? "");
  if (described.length !== gpus.length) {
    throw new Error(`its XML has ${described.length} GPUs, and its list ${gpus.length}`);
  }
  const minors = readMinors(join(driverFolder, "nvidia-caps", "mig-minors"));
  return gpus.flatMap(({ gpu, isCut }) => {
    const text = described.find((each) => each.includes(`<uuid>${gpu.uuid}</uuid>`)) ?? "";
    const instances = text.split("<mig_device>").slice(1).map(readInstance);
    return (isCut ? instances : []).map((one): Gpu => {
      const { uuid, profile } = named.get(`${gpu.index} ${one.index}`) ?? {};
      if (uuid === undefined) {
        throw new Error(`it names no slice ${one.index} of GPU ${gpu.index}`);
      }
      // Compute instances of one GPU instance have its memory together.
      const beside = instances.filter(({ instance }) => instance === one.instance).length;
      const at = `gpu${gpu.minor}/gi${one.instance}`;
      return {
        ...gpu,
        uuid,
        name: `${gpu.name} MIG ${profile}`,
        memoryBytes: Math.floor(one.memoryMib / beside) * MEBIBYTE,
        usedBytes: one.usedMib * MEBIBYTE,
        slice: {
          index: one.index,
          gpu: gpu.uuid,
          capabilities: [`${at}/access`, `${at}/ci${one.computeInstance}/access`].flatMap(
            (name) => minors.get(name) ?? [],
          ),
        },
      };
    });
  });
}

/** The slices by the numbers of their GPUs and their own: `  MIG 1g.10gb  Device  0: (UUID: MIG-…)`. */
function readNames(
  text: string,
): ReadonlyMap<string, { readonly uuid: string; readonly profile: string }> {
  const named = new Map<string, { readonly uuid: string; readonly profile: string }>();
  let gpu = "";
  for (const line of text.split("\n")) {
    gpu = /^GPU (\d+):/.exec(line)?.[1] ?? gpu;
    const [, profile = "", index, uuid] =
      /^\s+MIG (\S+)\s+Device\s+(\d+): \(UUID: (MIG-[\w/-]+)\)/.exec(line) ?? [];
    if (uuid !== undefined) {
      named.set(`${gpu} ${index}`, { uuid, profile });
    }
  }
  return named;
}

function readInstance(text: string) {
  const number = (pattern: RegExp): number => Number(pattern.exec(text)?.[1] ?? Number.NaN);
  const read = {
    index: number(/<index>(\d+)</),
    instance: number(/<gpu_instance_id>(\d+)</),
    computeInstance: number(/<compute_instance_id>(\d+)</),
    memoryMib: number(/<fb_memory_usage>\s*<total>(\d+) MiB</),
  };
  if (Object.values(read).some(Number.isNaN)) {
    throw new Error(`it wrote ${JSON.stringify(text.trim().slice(0, 200))} of a slice`);
  }
  return { ...read, usedMib: number(/<used>(\d+) MiB</) || 0 };
}

function readMinors(path: string): ReadonlyMap<string, number> {
  const lines = existsSync(path) ? readFileSync(path, "utf8").split("\n") : [];
  return new Map(
    lines.flatMap((line) => {
      const [, name, minor] = /^(\S+) (\d+)$/.exec(line.trim()) ?? [];
      return name === undefined ? [] : [[name, Number(minor)] as const];
    }),
  );
}
