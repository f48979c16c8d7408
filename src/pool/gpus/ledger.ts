/**
 * Which workers of a machine have which of its GPUs, or of the slices of one (MIG), each of which is
 * dealt out as a GPU. A worker has whole ones, which it shares with nobody, or a share of some: a
 * part of it and of its memory. A share without memory has its part of the memory, and one without a
 * part the part that its memory is. The parts of a GPU are together never more than 1, and the
 * memory of its shares never more than its own. `shares.ts` holds workers to them.
 *
 * A GPU that has something to do here is locked among the programs of the machine that deal GPUs
 * out: a node and the workers of an agent beside it never have the same one at a time. What other
 * programs use of a GPU is not dealt out either.
 *
 * Whole GPUs are given in the order of their numbers, and shares where the least is left, so that
 * whole ones stay free.
 *
 * A GPU on which three workers ended in five minutes because it could not be used any more is left
 * out for half an hour: for all, if they were of several deployments, and else for the one that
 * they were of. An assertion of its own code ends a worker, too, and a deployment must not be able
 * to take a GPU from the others by it.
 */
import {
  type Gpu,
  type GpuShare,
  type Gpus,
  gibibytes,
  gpuText,
  NO_GPUS,
  type WorkerGpu,
} from "./gpus.ts";
import { ShareWatch, type SharingWorker } from "./shares.ts";

/** Ends of workers on a GPU that leave it out. */
const MAX_GPU_FAULTS = 3;
/** Time in which ends of workers on a GPU count together. */
const GPU_FAULT_WINDOW_MS = 5 * 60_000;
/** How long a GPU is left out before it is tried again. */
const GPU_LEFT_OUT_MS = 30 * 60_000;
/** How far sums of parts may be from what they are in decimals. */
const PART_TOLERANCE = 1e-9;

/** For the log: what `onUntold` says. */
export const SHARES_UNTOLD =
  "workers have shares of GPUs, and nothing ends one that uses more: nvidia-smi does not tell here how much each program uses (in a container it does with the process ids of the host)";

/** What a worker takes of the GPUs of its machine. */
export interface GpuNeed {
  /** How many, from 1. */
  readonly count: number;
  /** Which part of each, below 1. */
  readonly part?: number;
  /** How much of the memory of each. Without it and `part` they are its own, whole. */
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
  readonly gpus: readonly WorkerGpu[];
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
  /** A worker has a share, and what it uses cannot be told; called once. */
  readonly onUntold?: () => void;
}

interface Fault extends GpuHolder {
  readonly atMs: number;
}

/** A GPU with the grants that would have to end first. */
interface Candidate {
  readonly gpu: Gpu;
  readonly blocking: readonly GpuGrant[];
  readonly freeBytes: number;
}

export class GpuLedger {
  readonly #gpus: Gpus;
  readonly #nowMs: () => number;
  readonly #onLeftOut: GpuLedgerOptions["onLeftOut"];
  readonly #watch: ShareWatch;
  readonly #grants = new Set<GpuGrant>();
  /** By the names of the GPUs that some worker has, or may get in this turn. */
  readonly #locks = new Map<string, Disposable>();
  #unlocking: NodeJS.Immediate | undefined;
  /** The names of those that another program of the machine deals out, as last seen. */
  readonly #elsewhere = new Set<string>();
  /** By the UUIDs of GPUs. */
  readonly #faults = new Map<string, Fault[]>();

  constructor(
    gpus: Gpus = NO_GPUS,
    { nowMs = () => performance.now(), onLeftOut, onUntold }: GpuLedgerOptions = {},
  ) {
    this.#gpus = gpus;
    this.#nowMs = nowMs;
    this.#onLeftOut = onLeftOut;
    this.#watch = new ShareWatch(gpus, onUntold);
    gpus.onLook?.(() => this.#look());
    this.#look();
  }

  /** Every GPU with what has it. */
  get use(): readonly GpuUse[] {
    return this.#gpus.list.map((gpu) => {
      const grants = this.#grantsOn(gpu);
      const besides = grants.length === 0 ? this.#besides(gpu) : undefined;
      return { gpu, grants, leftOut: this.#lockedBy(gpu) ?? this.#leftOut(gpu) ?? besides };
    });
  }

  /** Takes what is needed; undefined while too much of it is taken. */
  take(need: GpuNeed, holder: GpuHolder): GpuGrant | undefined {
    const found = this.#find(need, holder);
    if (found === undefined) {
      return undefined;
    }
    const gpus = found.map(({ gpu }) => ({
      ...gpu,
      ...(!isWhole(need) && { share: shareOf(need, gpu) }),
    }));
    const grant = { holder, gpus };
    this.#grants.add(grant);
    return grant;
  }

  /** This worker has what was granted, and is held to it. */
  hold(grant: GpuGrant, worker: SharingWorker): void {
    this.#watch.hold(grant, worker);
  }

  /** The worker has ended; a second call does nothing. */
  give(grant: GpuGrant): void {
    this.#grants.delete(grant);
    this.#watch.release(grant);
    this.#unlockSoon();
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
      const out = this.#lockedBy(gpu) ?? this.#leftOut(gpu, asker);
      const holders = new Set(grants.map(({ holder }) => holderText(holder, asker)));
      const held = holders.size === 0 ? "free" : `held by ${[...holders].join(" and ")}`;
      const besides = this.#besides(gpu);
      const all = besides === undefined ? held : `${held}, and ${besides}`;
      return `${gpuText(gpu)} is ${out === undefined ? all : `left out: ${out}`}`;
    });
    const isCut = need.count > 1 && this.#gpus.list.some(({ slice }) => slice !== undefined);
    const slices = isCut ? "; a program computes on one slice at most" : "";
    return `a worker needs ${gpuNeedText(need)}, and ${there.length === 0 ? "it has no GPU" : there.join(", ")}${slices}`;
  }

  /** The GPUs for a worker; those that nothing blocks first. */
  #find(
    need: GpuNeed,
    holder: GpuHolder,
    {
      gone = new Set<GpuGrant>(),
      mayEnd = [],
    }: { readonly gone?: ReadonlySet<GpuGrant>; readonly mayEnd?: readonly GpuGrant[] } = {},
  ): readonly Candidate[] | undefined {
    const candidates = this.#gpus.list.flatMap((gpu) => {
      if (!mayHave(need, gpu) || this.#leftOut(gpu, holder) !== undefined || !this.#isOurs(gpu)) {
        return [];
      }
      const stays = this.#grantsOn(gpu).filter((grant) => !gone.has(grant));
      const blocking: GpuGrant[] = [];
      for (const grant of mayEnd) {
        if (fits(need, gpu, this.#freeOf(gpu, stays))) {
          break;
        }
        const at = stays.indexOf(grant);
        if (at >= 0) {
          blocking.push(...stays.splice(at, 1));
        }
      }
      const free = this.#freeOf(gpu, stays);
      return fits(need, gpu, free) ? [{ gpu, blocking, freeBytes: free.bytes }] : [];
    });
    const order = (one: Candidate): number =>
      Math.max(-1, ...one.blocking.map((each) => mayEnd.indexOf(each)));
    const best = candidates.toSorted(
      (a, b) =>
        a.blocking.length - b.blocking.length ||
        order(a) - order(b) ||
        (isWhole(need) ? 0 : a.freeBytes - b.freeBytes) ||
        a.gpu.index - b.gpu.index,
    );
    return best.length < need.count ? undefined : best.slice(0, need.count);
  }

  /** What is left of it beside these, and beside programs that are no workers. */
  #freeOf(gpu: Gpu, grants: readonly GpuGrant[]): GpuShare {
    const taken = grants.flatMap(({ gpus }) => gpus.filter(({ uuid }) => uuid === gpu.uuid));
    return taken.reduce(
      (free, { share }) => ({
        part: free.part - (share?.part ?? 1),
        bytes: free.bytes - (share?.bytes ?? gpu.memoryBytes),
      }),
      { part: 1, bytes: gpu.memoryBytes - this.#watch.foreignBytes(gpu) },
    );
  }

  #look(): void {
    this.#watch.look();
    for (const gpu of this.#gpus.list) {
      this.#isOurs(gpu);
    }
  }

  /** Locks it until nobody needs it here; false where another program of the machine deals it out. */
  #isOurs(gpu: Gpu): boolean {
    const { uuid } = gpu;
    if (this.#gpus.lock !== undefined && !this.#locks.has(uuid)) {
      const lock = this.#gpus.lock(gpu);
      if (lock === undefined) {
        this.#elsewhere.add(uuid);
        return false;
      }
      this.#locks.set(uuid, lock);
      this.#unlockSoon();
    }
    this.#elsewhere.delete(uuid);
    return true;
  }

  /** Not at once: what one worker gives another takes in the same turn, and nobody comes between. */
  #unlockSoon(): void {
    this.#unlocking ??= setImmediate(() => {
      this.#unlocking = undefined;
      const held = new Set([...this.#grants].flatMap(({ gpus }) => gpus.map(({ uuid }) => uuid)));
      for (const [uuid, lock] of this.#locks) {
        if (!held.has(uuid)) {
          lock[Symbol.dispose]();
          this.#locks.delete(uuid);
        }
      }
    });
  }

  /** Who else deals it out; undefined: nobody. */
  #lockedBy({ uuid }: Gpu): string | undefined {
    return this.#elsewhere.has(uuid)
      ? "another node, or a joined worker, on this machine has it"
      : undefined;
  }

  /** What else computes on it; undefined: nothing. */
  #besides(gpu: Gpu): string | undefined {
    const bytes = this.#watch.foreignBytes(gpu);
    return bytes === 0 ? undefined : `other programs on this machine use ${gibibytes(bytes)} of it`;
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

/** True when a worker gets them for itself alone. */
function isWhole({ part, memoryBytes }: GpuNeed): boolean {
  return part === undefined && memoryBytes === undefined;
}

/** What a worker with this need has of a GPU. */
function shareOf({ part, memoryBytes }: GpuNeed, gpu: MachineGpu): GpuShare {
  const bytes = memoryBytes ?? Math.floor((part ?? 1) * gpu.memoryBytes);
  return { part: part ?? bytes / gpu.memoryBytes, bytes };
}

function fits(need: GpuNeed, gpu: Gpu, free: GpuShare): boolean {
  const { part, bytes } = shareOf(need, gpu);
  return part <= free.part + PART_TOLERANCE && bytes <= free.bytes;
}

/** True when some of them came soon enough after each other. */
function areMany(faults: readonly Fault[]): boolean {
  return faults.some(({ atMs }, index) => {
    const last = faults[index + MAX_GPU_FAULTS - 1];
    return last !== undefined && last.atMs - atMs <= GPU_FAULT_WINDOW_MS;
  });
}

/** What is known of a GPU on another machine; `slice` is there for one. */
export type MachineGpu = Pick<Gpu, "memoryBytes"> & { readonly slice?: object | undefined };

/**
 * Whether a worker could have it, whatever has it now. A program computes on one slice at most, so
 * that one of several GPUs gets none.
 */
function mayHave({ count, memoryBytes = 0 }: GpuNeed, gpu: MachineGpu): boolean {
  return gpu.memoryBytes >= memoryBytes && (count === 1 || gpu.slice === undefined);
}

/** The most GPUs with what is needed of each that a worker could have here, whatever has them now. */
export function mostGpus(gpus: readonly MachineGpu[], need: GpuNeed): number {
  return gpus.filter((gpu) => mayHave(need, gpu)).length;
}

/** For people, who are of the asker's organization: the names of others are not theirs to know. */
function holderText({ organization, deployment }: GpuHolder, asker: GpuHolder): string {
  return organization === asker.organization
    ? [organization, deployment].filter((name) => name !== "").join("/")
    : "a deployment of another organization";
}

/** `1 GPU`, `20 GiB of 1 GPU`, `0.5 of 1 GPU`. */
export function gpuNeedText({ count, part, memoryBytes }: GpuNeed): string {
  const share = [
    ...(part === undefined ? [] : [part]),
    ...(memoryBytes === undefined ? [] : [gibibytes(memoryBytes)]),
  ].join(" and ");
  return `${share === "" ? "" : `${share} of `}${gpusText(count)}`;
}

/** `1 GPU`, `3 GPUs`. */
export function gpusText(count: number): string {
  return `${count} ${count === 1 ? "GPU" : "GPUs"}`;
}
