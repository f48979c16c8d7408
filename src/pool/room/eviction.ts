/**
 * Eviction: which idle workers end so that others may start, the least recently used
 * first. A worker is never evicted while it has a call, nor one of the minimum of its
 * deployment, nor one that has been idle for less than a second: two deployments that
 * are called in turn would do nothing but start.
 */

import { AllocationSum } from "./allocation.ts";
import type { IdleWorker, RoomRequest, Tenant } from "./room.ts";
import type { Shortage } from "./shortage.ts";

/** How long a worker has to be idle before it may be evicted. */
const EVICTABLE_IDLE_MS = 1_000;

interface EvictionFacts {
  /** Those who hold room. */
  readonly tenants: Iterable<Tenant>;
  readonly nowMs: number;
  /** The requests that wait for room, the first in turn first. */
  readonly waiting: () => readonly RoomRequest[];
  /** What was evicted and has not ended yet. */
  readonly leaving: AllocationSum;
  readonly shortage: (request: RoomRequest, gone: AllocationSum) => Shortage | undefined;
  /** True when the node or the organization uses more memory than it may without the `gone`. */
  readonly isOver: (organization: string, gone: AllocationSum) => boolean;
}

/** Finds the workers to evict now: where memory is short, and for the first request that it helps. */
export function findEvictions(facts: EvictionFacts): readonly IdleWorker[] {
  const { tenants, nowMs, waiting, shortage, isOver } = facts;
  const idle = [...tenants]
    .flatMap((tenant) => [...tenant.idle()])
    .filter(({ room, sinceMs }) => !room.evicted && sinceMs + EVICTABLE_IDLE_MS <= nowMs)
    .sort((a, b) => a.sinceMs - b.sinceMs);
  if (idle.length === 0) {
    return [];
  }
  const gone = new AllocationSum(facts.leaving);
  const victims = new Set<IdleWorker>();
  for (const worker of idle) {
    if (isOver(worker.room.tenant.organization, gone)) {
      take(worker, victims, gone);
    }
  }
  for (const request of waiting()) {
    const helpful = victimsFor(request, { idle, victims, gone, shortage });
    if (helpful !== undefined) {
      return [...victims, ...helpful];
    }
  }
  return [...victims];
}

/** The workers whose end makes room for the request; undefined when there are not enough. */
function victimsFor(
  request: RoomRequest,
  {
    idle,
    victims,
    gone,
    shortage,
  }: Pick<EvictionFacts, "shortage"> & {
    readonly idle: readonly IdleWorker[];
    readonly victims: ReadonlySet<IdleWorker>;
    readonly gone: AllocationSum;
  },
): Set<IdleWorker> | undefined {
  const more = new Set<IdleWorker>();
  const without = new AllocationSum(gone);
  for (let short = shortage(request, without); short; short = shortage(request, without)) {
    const { organization } = short;
    const next = idle.find(
      (worker) =>
        !victims.has(worker) &&
        !more.has(worker) &&
        (request.isRollout === true || worker.room.tenant !== request.tenant) &&
        (organization ?? worker.room.tenant.organization) === worker.room.tenant.organization,
    );
    if (next === undefined) {
      return undefined;
    }
    take(next, more, without);
  }
  return more;
}

function take(worker: IdleWorker, victims: Set<IdleWorker>, gone: AllocationSum): void {
  const { tenant, bytes } = worker.room;
  victims.add(worker);
  gone.add(tenant.organization, { workers: 1, memoryBytes: bytes });
}
