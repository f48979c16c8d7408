/** The limits of a node's budget, and which of them leaves no room. */
import type { Allocation } from "./allocation.ts";

/** What workers may take of a node. */
export interface BudgetLimits {
  readonly node: Allocation;
  readonly organization: Allocation;
}

/** A limit that leaves no room. */
export interface Shortage {
  readonly of: "workers" | "memoryBytes";
  /** Set when the limit is that of this organization, not the node's. */
  readonly organization?: string;
}

/** What is taken of a limit, and what of it will be given back. */
interface TakenAllocation {
  readonly taken: Allocation;
  readonly gone: Allocation | undefined;
  readonly limit: Allocation;
}

/** What there is too little of for one more worker with this memory. */
export function shortOf(
  bytes: number,
  { taken, gone, limit }: TakenAllocation,
): Shortage["of"] | undefined {
  const memoryBytes = taken.memoryBytes - (gone?.memoryBytes ?? 0);
  const workers = taken.workers - (gone?.workers ?? 0);
  if (workers + 1 > limit.workers) {
    return "workers";
  }
  // A worker that is expected to take more than all of it may still run alone.
  return workers > 0 && memoryBytes + bytes > limit.memoryBytes ? "memoryBytes" : undefined;
}

/** The limit, for people: what the node does, and the setting to change. */
export function toldOf({ of, organization }: Shortage, limits: BudgetLimits): string {
  const [whose, per, { workers, memoryBytes }] =
    organization === undefined
      ? (["", "", limits.node] as const)
      : ([` of organization ${organization}`, "-per-organization", limits.organization] as const);
  return of === "workers"
    ? `it runs the ${workers} workers${whose} that it may (tessera start --max-workers${per})`
    : `its workers${whose} use the ${Math.floor(memoryBytes / 1024 ** 2)} MiB of memory that they may (tessera start --max-memory${per})`;
}
