/** The GPUs of a machine: the port. `nvidia-smi.ts` finds those of NVIDIA. */

/** A device that is dealt out: a GPU, or a slice of one that is cut (MIG). */
export interface Gpu {
  /** Its number in the order of the bus, from 0: what people call it. Slices have that of their GPU. */
  readonly index: number;
  /** Its name that no other has, such as `GPU-1bef1992-1812-d025-a9b8-48271d75a3fd`, or `MIG-…`. */
  readonly uuid: string;
  /** Its model, such as `NVIDIA H200`, or `NVIDIA H200 MIG 1g.18gb`. */
  readonly name: string;
  /** The number of its device file, `/dev/nvidiaN`. */
  readonly minor: number;
  readonly memoryBytes: number;
  /** What all programs of the machine use of its memory, as last seen. */
  readonly usedBytes: number;
  /** Undefined for a whole GPU. */
  readonly slice?: GpuSlice;
}

interface GpuSlice {
  /** Its number on its GPU, from 0. */
  readonly index: number;
  /** The name of its GPU. */
  readonly gpu: string;
  /** The numbers of the files that open it, `/dev/nvidia-caps/nvidia-capN`. */
  readonly capabilities: readonly number[];
}

/** A GPU as a worker has it. */
export interface WorkerGpu extends Gpu {
  /** Undefined: it is the worker's own, whole. */
  readonly share?: GpuShare;
}

/** A share of a GPU: those of one are together at most 1, and at most its memory. */
export interface GpuShare {
  /** Above 0, and at most 1. */
  readonly part: number;
  readonly bytes: number;
}

/** A program that computes on a GPU. */
export interface GpuProcess {
  /** Its id in the machine's own namespace. */
  readonly pid: number;
  /** The name of the GPU, of a slice the slice's or its GPU's. */
  readonly gpu: string;
  /** What it uses of its memory; undefined: that is not told. */
  readonly bytes: number | undefined;
}

export interface Gpus {
  /** As last seen, by their numbers; empty where there are none. */
  readonly list: readonly Gpu[];
  /** The programs on them, as last seen; undefined where they cannot be told. Absent: there are none. */
  readonly processes?: readonly GpuProcess[] | undefined;
  /** Calls back when there are others than before. Absent: there never are. */
  onChange?(listener: () => void): void;
  /** Calls back after each look. Absent: nobody looks. */
  onLook?(listener: () => void): void;
  /**
   * Locks it for this process among all of the machine that deal GPUs out, until the lock is disposed
   * of or the process ends; undefined: another one has it. Absent: there is no other.
   */
  lock?(gpu: Gpu): Disposable | undefined;
}

/** A machine without GPUs. */
export const NO_GPUS: Gpus = { list: [] };

/** For people: `GPU 0 (NVIDIA H200)`, `slice 1 of GPU 0 (NVIDIA H200 MIG 1g.18gb)`. */
export function gpuText({ index, name, slice }: Pick<Gpu, "index" | "name" | "slice">): string {
  return `${slice === undefined ? "" : `slice ${slice.index} of `}GPU ${index} (${name})`;
}

/** For people, what a worker has: with its share, `70 GiB (0.5) of GPU 0 (NVIDIA H200)`. */
export function workerGpuText(gpu: WorkerGpu): string {
  const { share } = gpu;
  const of = share && `${gibibytes(share.bytes)} (${Number(share.part.toFixed(2))}) of `;
  return `${of ?? ""}${gpuText(gpu)}`;
}

/** `20 GiB`. */
export function gibibytes(bytes: number): string {
  return `${Number((bytes / 1024 ** 3).toFixed(1))} GiB`;
}
