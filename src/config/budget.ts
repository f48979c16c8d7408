/** The budget of a node: as it is set, or made from what the machine has. */
import { availableParallelism, totalmem } from "node:os";
import type { BudgetLimits } from "../pool/room/shortage.ts";
import type { Values } from "./settings.ts";
import type { START_SETTINGS } from "./start-settings.ts";

/** Default of a node's workers: even idle ones are watched, and take some processor time. */
const DEFAULT_WORKERS_PER_CORE = 64;

/** Part of the machine's memory that is for workers: the node, its database and the system need some. */
const DEFAULT_WORKERS_MEMORY_RATIO = 0.75;

/** Part of a node that one organization may take, so that something is left for others. */
const DEFAULT_ORGANIZATION_RATIO = 0.75;

type BudgetSettings = Pick<
  Values<typeof START_SETTINGS>,
  "maxWorkers" | "maxMemory" | "maxWorkersPerOrganization" | "maxMemoryPerOrganization"
>;

/** What this process may use. */
export interface Machine {
  readonly cores: number;
  readonly memoryBytes: number;
}

export function budgetLimits(read: BudgetSettings, machine: Machine = thisMachine()): BudgetLimits {
  const node = {
    workers: read.maxWorkers ?? machine.cores * DEFAULT_WORKERS_PER_CORE,
    memoryBytes: read.maxMemory ?? Math.floor(machine.memoryBytes * DEFAULT_WORKERS_MEMORY_RATIO),
  };
  return {
    node,
    organization: {
      workers:
        read.maxWorkersPerOrganization ?? Math.ceil(node.workers * DEFAULT_ORGANIZATION_RATIO),
      memoryBytes:
        read.maxMemoryPerOrganization ?? Math.ceil(node.memoryBytes * DEFAULT_ORGANIZATION_RATIO),
    },
  };
}

/** The machine, or the container with its limit of memory (cgroup) in which the process runs. */
function thisMachine(): Machine {
  // 0 or more than there is: no limit.
  const limit = process.constrainedMemory() || Number.POSITIVE_INFINITY;
  return { cores: availableParallelism(), memoryBytes: Math.min(totalmem(), limit) };
}
