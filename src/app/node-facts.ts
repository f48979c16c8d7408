/** What a node says of itself with each heartbeat, for the operator. */
import { statfs } from "node:fs/promises";
import type { BudgetUse } from "../pool/budget.ts";
import type { SandboxLevel } from "../pool/sandbox/sandbox.ts";
import type { NodeFacts } from "../storage/hosting/nodes.ts";
import { version } from "../version.ts";

export interface NodeFactsOptions {
  readonly dataFolder: string;
  readonly sandbox: SandboxLevel;
  /** What the node's workers may take together. */
  readonly limit: { readonly workers: number; readonly memoryBytes: number };
  readonly use: () => BudgetUse;
}

export async function readNodeFacts(options: NodeFactsOptions): Promise<NodeFacts> {
  const { workers, memoryBytes, waiting } = options.use();
  // A folder that cannot be looked at keeps no node from its heartbeat.
  const disk = await statfs(options.dataFolder).catch(() => undefined);
  const blockBytes = disk?.bsize ?? 0;
  return {
    version,
    sandbox: options.sandbox,
    workers,
    maxWorkers: options.limit.workers,
    memoryBytes,
    maxMemoryBytes: options.limit.memoryBytes,
    waiting,
    freeDiskBytes: blockBytes * (disk?.bavail ?? 0),
    diskBytes: blockBytes * (disk?.blocks ?? 0),
  };
}
