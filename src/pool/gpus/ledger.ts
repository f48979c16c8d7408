/**
 * Which workers of a machine have which of its GPUs. A worker has whole ones, which it shares with
 * nobody, or a share of the memory of some: the shares of a GPU are never more than its memory. A
 * share is what is dealt out, not what is held: no kernel bounds the memory of a GPU.
 *
 * Whole GPUs are given in the order of their numbers, and shares where the least is left, so that
 * whole ones stay free.
 *
 * A GPU on which three workers ended in five minutes because it could not be used any more is left
 * out for half an hour: for all, if they were of several deployments, and else for the one that
 * they were of. An assertion of its own code ends a worker, too, and a deployment must not be able
 * to take a GPU from the others by it.
 */
import { type Gpu, type Gpus, gpuText, NO_GPUS } from "./gpus.ts";

/** Ends of workers on a GPU that leave it out. */
const MAX_GPU_FAULTS = 3;
/** Time in which ends of workers on a GPU count together. */
const GPU_FAULT_WINDOW_MS = 5 * 60_000;
/** How long a GPU is left out before it is tried again. */
const GPU_LEFT_OUT_MS = 30 * 60_000;

/** What a worker takes of the GPUs of its machine. */
export interface GpuNeed {
  /** How many, from 1. */
  readonly count: number;
  /** How much of the memory of each; undefined: they are its own, whole. */
  readonly memoryBytes?: number;
}

/** Whose workers they are. */
export interface GpuHolder {
  readonly organization: string;
  /** The name of the deployment in it. */
  readonly deployment: string;
}

/** What a worker has of GPUs, from before its start until its process has ended. */
export interface GpuGrant {
  readonly holder: GpuHolder;
  readonly need: GpuNeed;
  readonly gpus: readonly Gpu[];
}

/** A GPU, and what has it. */
export interface GpuUse {
  readonly gpu: Gpu;
  readonly grants: readonly GpuGrant[];
  /** Why no worker is started on it; undefined: nothing is wrong. */
  readonly leftOut: string | undefined;
}

interface GpuLedgerOptions {
  readonly nowMs?: () => number;
  /** A GPU is left out from now on. */
  readonly onLeftOut?: (gpu: Gpu, reason: string) => void;
}

interface Fault extends GpuHolder {
  readonly atMs: number;
}

/** A GPU with the grants that would have to end first. */
interface Candidate {
  readonly gpu: Gpu;
  readonly blocking: readonly GpuGrant[];
}

export class GpuLedger {
  readonly #gpus: Gpus;
  readonly #nowMs: () => number;
  readonly #onLeftOut: GpuLedgerOptions["onLeftOut"];
  readonly #grants = new Set<GpuGrant>();
  /** By the UUIDs of GPUs. */
  readonly #faults = new Map<string, Fault[]>();

  constructor(
    gpus: Gpus = NO_GPUS,
    { nowMs = () => performance.now(), onLeftOut }: GpuLedgerOptions = {},
  ) {
    this.#gpus = gpus;
    this.#nowMs = nowMs;
    this.#onLeftOut = onLeftOut;
  }

  /** Every GPU with what has it. */
  get use(): readonly GpuUse[] {
    return this.#gpus.list.map((gpu) => ({
      gpu,
      grants: this.#grantsOn(gpu),
      leftOut: unusable(gpu) ?? this.#leftOut(gpu),
    }));
  }

  /** Takes what is needed; undefined while too much of it is taken. */
  take(need: GpuNeed, holder: GpuHolder): GpuGrant | undefined {
    const found = this.#find(need, holder);
    if (found === undefined) {
      return undefined;
    }
    const grant = { holder, need, gpus: found.map(({ gpu }) => gpu) };
    this.#grants.add(grant);
    return grant;
  }

  /** The worker has ended; a second call does nothing. */
  give(grant: GpuGrant): void {
    this.#grants.delete(grant);
  }

  /** True when there is what is needed once the `gone` have ended. */
  has(need: GpuNeed, holder: GpuHolder, gone: ReadonlySet<GpuGrant> = new Set()): boolean {
    return this.#find(need, holder, { gone }) !== undefined;
  }

  /**
   * What would have to end so that there is what is needed, once the `gone` have ended: the fewest
   * of `mayEnd`, the first of them first. Undefined when all of these would not do.
   */
  blocking(
    need: GpuNeed,
    holder: GpuHolder,
    ends: { readonly gone: ReadonlySet<GpuGrant>; readonly mayEnd: readonly GpuGrant[] },
  ): readonly GpuGrant[] | undefined {
    const found = this.#find(need, holder, ends);
    return found && [...new Set(found.flatMap(({ blocking }) => blocking))];
  }

  /** A worker of this grant has ended because its GPU could not be used any more. */
  faulted({ gpus, holder }: GpuGrant): void {
    for (const gpu of gpus) {
      const before = this.#leftOut(gpu, holder);
      const { organization, deployment } = holder;
      const fault = { organization, deployment, atMs: this.#nowMs() };
      this.#faults.set(gpu.uuid, [...this.#recent(gpu), fault]);
      const leftOut = this.#leftOut(gpu, holder);
      if (before === undefined && leftOut !== undefined) {
        this.#onLeftOut?.(gpu, leftOut);
      }
    }
  }

  /** For people of the asker's organization: why there is not what is needed. */
  shortage(need: GpuNeed, asker: GpuHolder): string {
    const there = this.use.map(({ gpu, grants }) => {
      const out = unusable(gpu) ?? this.#leftOut(gpu, asker);
      const holders = new Set(grants.map(({ holder }) => holderText(holder, asker)));
      const held = holders.size === 0 ? "free" : `held by ${[...holders].join(" and ")}`;
      return `${gpuText(gpu)} is ${out === undefined ? held : `left out: ${out}`}`;
    });
    return `a worker needs ${gpuNeedText(need)}, and ${there.length === 0 ? "it has no GPU" : there.join(", ")}`;
  }

  /** The GPUs for a worker; those that nothing blocks first. */
  #find(
    { count, memoryBytes }: GpuNeed,
    holder: GpuHolder,
    {
      gone = new Set<GpuGrant>(),
      mayEnd = [],
    }: { readonly gone?: ReadonlySet<GpuGrant>; readonly mayEnd?: readonly GpuGrant[] } = {},
  ): readonly Candidate[] | undefined {
    const candidates = this.#gpus.list.flatMap((gpu) => {
      if (unusable(gpu) !== undefined || this.#leftOut(gpu, holder) !== undefined) {
        return [];
      }
      const stays = this.#grantsOn(gpu).filter((grant) => !gone.has(grant));
      const blocking: GpuGrant[] = [];
      for (const grant of mayEnd) {
        if (freeOf(gpu, stays) >= (memoryBytes ?? gpu.memoryBytes)) {
          break;
        }
        const at = stays.indexOf(grant);
        if (at >= 0) {
          blocking.push(...stays.splice(at, 1));
        }
      }
      const free = freeOf(gpu, stays);
      return free >= (memoryBytes ?? gpu.memoryBytes) ? [{ gpu, blocking, free }] : [];
    });
    const order = (one: Candidate): number =>
      Math.max(-1, ...one.blocking.map((each) => mayEnd.indexOf(each)));
    const best = candidates.toSorted(
      (a, b) =>
        a.blocking.length - b.blocking.length ||
        order(a) - order(b) ||
        (memoryBytes === undefined ? 0 : a.free - b.free) ||
        a.gpu.index - b.gpu.index,
    );
    return best.length < count ? undefined : best.slice(0, count);
  }

  #grantsOn({ uuid }: Gpu): GpuGrant[] {
    return [...this.#grants].filter(({ gpus }) => gpus.some((gpu) => gpu.uuid === uuid));
  }

  /** Why it is left out: for a holder, or where none is named, for anybody. */
  #leftOut(gpu: Gpu, holder?: GpuHolder): string | undefined {
    const faults = this.#recent(gpu);
    if (!areMany(faults)) {
      return undefined;
    }
    const again = "ended on it again and again because it could not be used any more";
    const byHolder = Map.groupBy(faults, (fault) => `${fault.organization}/${fault.deployment}`);
    if (byHolder.size > 1) {
      return `workers of several deployments ${again}`;
    }
    return holder === undefined || byHolder.has(`${holder.organization}/${holder.deployment}`)
      ? `workers of ${[...byHolder.keys()][0]} ${again}`
      : undefined;
  }

  /** The faults that are not forgotten. */
  #recent({ uuid }: Gpu): Fault[] {
    const sinceMs = this.#nowMs() - GPU_LEFT_OUT_MS;
    return (this.#faults.get(uuid) ?? []).filter(({ atMs }) => atMs > sinceMs);
  }
}

/** What is left of the memory of a GPU; nothing of one that somebody has whole. */
function freeOf(gpu: Gpu, grants: readonly GpuGrant[]): number {
  const taken = grants.map(({ need }) => need.memoryBytes ?? gpu.memoryBytes);
  return gpu.memoryBytes - taken.reduce((sum, bytes) => sum + bytes, 0);
}

/** True when some of them came soon enough after each other. */
function areMany(faults: readonly Fault[]): boolean {
  return faults.some(({ atMs }, index) => {
    const last = faults[index + MAX_GPU_FAULTS - 1];
    return last !== undefined && last.atMs - atMs <= GPU_FAULT_WINDOW_MS;
  });
}

/** What is known of a GPU on another machine. */
export type MachineGpu = Pick<Gpu, "memoryBytes"> & Partial<Pick<Gpu, "isSliced">>;

/** Why no worker can ever have it; undefined: one can. */
function unusable({ isSliced = false }: MachineGpu): string | undefined {
  return isSliced ? "it is cut into slices (MIG), which are not dealt out" : undefined;
}

/** The most GPUs that a worker could have here, whatever has them now, with so much memory each. */
export function mostGpus(gpus: readonly MachineGpu[], memoryBytes = 0): number {
  return gpus.filter((gpu) => unusable(gpu) === undefined && gpu.memoryBytes >= memoryBytes).length;
}

/** For people, who are of the asker's organization: the names of others are not theirs to know. */
function holderText({ organization, deployment }: GpuHolder, asker: GpuHolder): string {
  return organization === asker.organization
    ? [organization, deployment].filter((name) => name !== "").join("/")
    : "a deployment of another organization";
}

/** `1 GPU`, `20 GiB of 1 GPU`. */
export function gpuNeedText({ count, memoryBytes }: GpuNeed): string {
  const share = memoryBytes === undefined ? "" : `${gibibytes(memoryBytes)} of `;
  return `${share}${gpusText(count)}`;
}

/** `1 GPU`, `3 GPUs`. */
export function gpusText(count: number): string {
  return `${count} ${count === 1 ? "GPU" : "GPUs"}`;
}

function gibibytes(bytes: number): string {
  return `${Number((bytes / 1024 ** 3).toFixed(1))} GiB`;
}
