/** The GPUs of a machine: the port. `nvidia-smi.ts` finds those of NVIDIA. */

export interface Gpu {
  /** Its number in the order of the bus, from 0: what people call it. */
  readonly index: number;
  /** Its name that no other GPU has, such as `GPU-1bef1992-1812-d025-a9b8-48271d75a3fd`. */
  readonly uuid: string;
  /** Its model, such as `NVIDIA H200`. */
  readonly name: string;
  /** The number of its device file, `/dev/nvidiaN`. */
  readonly minor: number;
  readonly memoryBytes: number;
  /** What all programs of the machine use of its memory, as last seen. */
  readonly usedBytes: number;
  /** It is cut into slices (MIG), so that programs get one of these and never the whole. */
  readonly isSliced: boolean;
}

export interface Gpus {
  /** As last seen, by their numbers; empty where there are none. */
  readonly list: readonly Gpu[];
  /** Calls back when there are others than before. Absent: there never are. */
  onChange?(listener: () => void): void;
}

/** A machine without GPUs. */
export const NO_GPUS: Gpus = { list: [] };

/** For people: `GPU 0 (NVIDIA H200)`. */
export function gpuText({ index, name }: Pick<Gpu, "index" | "name">): string {
  return `GPU ${index} (${name})`;
}
