/**
 * What holds workers to their shares of GPUs. No kernel bounds the memory of a GPU, so after each
 * look at them, what the processes of a worker use of each is added up: a worker that was beyond its
 * share at two looks in a row is ended. A library that keeps to what the variables of a worker say
 * is never.
 *
 * By the same list is seen what programs beside the platform use, which is not dealt out.
 */
import { mebibytes } from "../limits.ts";
import { descendantsOf } from "../process-tree.ts";
import { parentOf } from "../usage.ts";
import { type Gpu, type GpuProcess, type Gpus, gpuText, type WorkerGpu } from "./gpus.ts";

/** What a worker may use of a GPU beyond its share, at least: a context of CUDA takes some of it. */
const MIN_MARGIN_BYTES = 512 * 1024 ** 2;
/** The same as a part of the share, where that is more. */
const MIN_MARGIN_SHARE = 0.1;
/** What programs beside the platform may use of a GPU that counts as free: some only watch it. */
const MAX_WATCHING_BYTES = 512 * 1024 ** 2;
/** Ancestors of a process that are looked at. */
const MAX_ANCESTORS = 64;

/** A worker as far as it is held to its share. */
export interface SharingWorker {
  /** The first of its processes; undefined when none was started. */
  readonly pid: number | undefined;
  kill(reason: string, cause: "gpu_memory"): void;
}

/** What a worker has of GPUs, by the grant that it has them by. */
interface Granted {
  readonly gpus: readonly WorkerGpu[];
}

export class ShareWatch {
  readonly #gpus: Gpus;
  readonly #onUntold: () => void;
  readonly #held = new Map<Granted, { readonly worker: SharingWorker; wasBeyond: boolean }>();
  /** What programs beside the platform use, by the names of GPUs. */
  #foreign: ReadonlyMap<string, number> = new Map();
  #hasTold = false;

  /** `onUntold`: a worker has a share, and what it uses cannot be told; called once. */
  constructor(gpus: Gpus, onUntold: () => void = () => {}) {
    this.#gpus = gpus;
    this.#onUntold = onUntold;
  }

  /** The worker is held to the shares that it was granted, until they are released. */
  hold(grant: Granted, worker: SharingWorker): void {
    if (grant.gpus.some(({ share }) => share !== undefined)) {
      this.#held.set(grant, { worker, wasBeyond: false });
      this.#tell();
    }
  }

  release(grant: Granted): void {
    this.#held.delete(grant);
  }

  /** What programs beside the platform use of it, where that is more than to watch it. */
  foreignBytes(gpu: Gpu): number {
    const bytes = this.#foreign.get(gpu.uuid) ?? 0;
    return bytes > MAX_WATCHING_BYTES ? bytes : 0;
  }

  /** The GPUs were looked at. */
  look(): void {
    this.#tell();
    const processes = this.#gpus.processes ?? [];
    const foreign = new Map<string, number>();
    for (const { gpu, bytes = 0 } of processes.filter(({ pid }) => isForeign(pid))) {
      foreign.set(gpu, (foreign.get(gpu) ?? 0) + bytes);
    }
    this.#foreign = foreign;
    for (const [{ gpus }, held] of this.#held) {
      const beyond = beyondShare(gpus, held.worker, processes);
      if (beyond !== undefined && held.wasBeyond) {
        held.worker.kill(beyond, "gpu_memory");
      }
      held.wasBeyond = beyond !== undefined;
    }
  }

  #tell(): void {
    const { processes = this.#gpus.onLook === undefined ? [] : undefined } = this.#gpus;
    const isUntold = processes === undefined || processes.some(({ bytes }) => bytes === undefined);
    if (isUntold && this.#held.size > 0 && !this.#hasTold) {
      this.#hasTold = true;
      this.#onUntold();
    }
  }
}

/** Why the worker has to end; undefined: it keeps to its shares. */
function beyondShare(
  gpus: readonly WorkerGpu[],
  { pid }: SharingWorker,
  processes: readonly GpuProcess[],
): string | undefined {
  const own = pid === undefined ? new Set<number>() : descendantsOf(pid).add(pid);
  for (const gpu of gpus) {
    const { share, uuid, slice } = gpu;
    const used = processes
      .filter((each) => own.has(each.pid) && (each.gpu === uuid || each.gpu === slice?.gpu))
      .reduce((sum, { bytes = 0 }) => sum + bytes, 0);
    if (
      share !== undefined &&
      used > share.bytes + Math.max(MIN_MARGIN_BYTES, share.bytes * MIN_MARGIN_SHARE)
    ) {
      return `out of GPU memory: it used ${mebibytes(used)} of ${mebibytes(share.bytes)} of ${gpuText(gpu)}, which it shares (gpus, gpu_memory)`;
    }
  }
  return undefined;
}

/** True for a process that runs, and that neither is this one nor comes from it. */
function isForeign(pid: number): boolean {
  let ancestor: number | undefined = pid;
  for (let count = 0; count < MAX_ANCESTORS && ancestor !== process.pid; count += 1) {
    ancestor = parentOf(ancestor);
    if (ancestor === undefined) {
      return false;
    }
    if (ancestor <= 1) {
      return true;
    }
  }
  return ancestor !== process.pid;
}
