/**
 * What a node says of itself with each heartbeat, for the operator. The disk is looked at in
 * the background and told as it was last seen, because a disk that hangs must not delay the
 * heartbeat by which the node lives.
 */
import { statfs } from "node:fs/promises";
import type { GpuUse } from "../pool/gpus/ledger.ts";
import { MachineMeter } from "../pool/machine-load.ts";
import type { BudgetUse } from "../pool/room/budget.ts";
import type { SandboxLevel } from "../pool/sandbox/sandbox.ts";
import type { MachineLabels } from "../storage/deployment-settings.ts";
import type { NodeFacts, NodeGpu } from "../storage/hosting/nodes.ts";
import { version } from "../version.ts";

/** Free and all bytes of a disk; 0 of 0 for one that could not be looked at. */
export type Disk = Pick<NodeFacts, "freeDiskBytes" | "diskBytes">;

interface NodeFactsOptions {
  /** Where people reach the platform. */
  readonly platformUrl: string;
  readonly sandbox: SandboxLevel;
  readonly labels: MachineLabels;
  /** What the node's workers may take together. */
  readonly limit: { readonly workers: number; readonly memoryBytes: number };
  readonly use: () => Pick<BudgetUse, "workers" | "memoryBytes" | "waiting" | "gpus">;
  readonly isDraining: () => boolean;
  /** Looks at the disk of the data folder: `readDisk`. */
  readonly disk: () => Promise<Disk>;
}

/** Looks at the disk; then answers what tells the facts of now, at once. */
export async function openNodeFacts(options: NodeFactsOptions): Promise<() => NodeFacts> {
  const { platformUrl, sandbox, labels, limit, use, isDraining } = options;
  const meter = new MachineMeter();
  let disk = await options.disk();
  let isLooking = false;
  const look = async (): Promise<void> => {
    isLooking = true;
    disk = await options.disk();
    isLooking = false;
  };
  return () => {
    if (!isLooking) {
      void look();
    }
    const { workers, memoryBytes, waiting, gpus } = use();
    return {
      version,
      platformUrl,
      sandbox,
      workers,
      maxWorkers: limit.workers,
      memoryBytes,
      maxMemoryBytes: limit.memoryBytes,
      waiting,
      ...disk,
      labels,
      load: meter.look(),
      ...(isDraining() && { draining: true }),
      ...(gpus.length > 0 && { gpus: gpus.map(toNodeGpu) }),
    };
  };
}

function toNodeGpu({ gpu, grants, leftOut }: GpuUse): NodeGpu {
  const { index, name, memoryBytes, usedBytes, slice } = gpu;
  const parts = grants.flatMap(({ gpus }) => gpus.filter(({ uuid }) => uuid === gpu.uuid));
  const dealt = parts.reduce((sum, { share }) => sum + (share?.part ?? 1), 0);
  return {
    ...{ index, name, memoryBytes, usedBytes },
    ...(slice !== undefined && { slice: { index: slice.index } }),
    dealt: Number(dealt.toFixed(2)),
    holders: grants.map(({ holder }) => `${holder.organization}/${holder.deployment}`),
    ...(leftOut !== undefined && { leftOut }),
  };
}

/** The disk that has this folder. Never rejects. */
export async function readDisk(folder: string): Promise<Disk> {
  const found = await statfs(folder).catch(() => undefined);
  const blockBytes = found?.bsize ?? 0;
  return {
    freeDiskBytes: blockBytes * (found?.bavail ?? 0),
    diskBytes: blockBytes * (found?.blocks ?? 0),
  };
}
