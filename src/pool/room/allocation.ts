/** A running sum of what workers take of a node, in all and per organization. */
import type { GpuGrant } from "../gpus/ledger.ts";

/** Workers, and their memory together. */
export interface Allocation {
  readonly workers: number;
  readonly memoryBytes: number;
}

export class AllocationSum {
  #node: Allocation;
  readonly #organizations: Map<string, Allocation>;
  /** What they have of GPUs. */
  readonly gpus: Set<GpuGrant>;

  constructor(from?: AllocationSum) {
    this.#node = from?.node ?? nothing();
    this.#organizations = new Map(from?.organizations);
    this.gpus = new Set(from?.gpus);
  }

  get node(): Allocation {
    return this.#node;
  }

  get organizations(): ReadonlyMap<string, Allocation> {
    return this.#organizations;
  }

  of(organization: string): Allocation {
    return this.#organizations.get(organization) ?? nothing();
  }

  /** Adds a share, which may be negative. */
  add(organization: string, share: Allocation): void {
    this.#node = sum(this.#node, share);
    const own = sum(this.of(organization), share);
    if (own.workers === 0) {
      this.#organizations.delete(organization);
    } else {
      this.#organizations.set(organization, own);
    }
  }
}

function nothing(): Allocation {
  return { workers: 0, memoryBytes: 0 };
}

function sum(a: Allocation, b: Allocation): Allocation {
  return { workers: a.workers + b.workers, memoryBytes: a.memoryBytes + b.memoryBytes };
}
