/**
 * Eviction: which idle workers end so that others may start, the least recently used
 * first. A worker is never evicted while it has a call, nor one that has been idle for less
 * than a second: two deployments that are called in turn would do nothing but start.
 *
 * One of the minimum of its deployment is evicted for nobody who wants workers or memory. For
 * GPUs it is, once it has had them for a while, if calls, tasks or a roll-out wait for the first
 * worker of another deployment: there are often fewer GPUs than deployments that would keep one.
 *
 * A roll-out that needs GPUs which its own deployment has takes those of the old workers, also of
 * busy ones, which end their calls first: two models are rarely in one GPU at a time.
 */

import type { GpuLedger } from "../gpus/ledger.ts";
import { AllocationSum } from "./allocation.ts";
import type { ReadyWorker, RoomRequest, Tenant } from "./room.ts";
import type { Shortage } from "./shortage.ts";

/** How long a worker has to be idle before it may be evicted. */
const EVICTABLE_IDLE_MS = 1_000;

interface EvictionFacts {
  /** Those who hold room. */
  readonly tenants: Iterable<Tenant>;
  readonly nowMs: number;
  /** The requests that wait for room, or the roll-outs among them, the first in turn first. */
  readonly waiting: (rolloutsOnly: boolean) => Iterable<RoomRequest>;
  /** What was evicted and has not ended yet. */
  readonly leaving: AllocationSum;
  readonly shortage: (request: RoomRequest, gone: AllocationSum) => Shortage | undefined;
  readonly gpus: Pick<GpuLedger, "blocking">;
  /** How long a worker keeps its GPUs at least. */
  readonly gpuStayMs: number;
  /** True when the node or the organization uses more memory than it may without the `gone`. */
  readonly isOver: (organization: string, gone: AllocationSum) => boolean;
}

/** Finds the workers to evict now: where memory is short, and for the first request that it helps. */
export function findEvictions(facts: EvictionFacts): readonly ReadyWorker[] {
  const { tenants, nowMs, waiting, isOver } = facts;
  const ready = [...tenants]
    .flatMap((tenant) => [...tenant.workers()])
    .filter(({ room }) => !room.evicted)
    .sort((a, b) => a.idleSinceMs - b.idleSinceMs);
  const idle = ready.filter(({ idleSinceMs }) => idleSinceMs + EVICTABLE_IDLE_MS <= nowMs);
  const gone = new AllocationSum(facts.leaving);
  const victims = new Set<ReadyWorker>();
  for (const worker of idle) {
    if (!worker.isKept && isOver(worker.room.tenant.organization, gone)) {
      take(worker, victims, gone);
    }
  }
  const owners = new Set(idle.map(({ room }) => room.tenant));
  /** Those that nothing helps, by what decides it for all who ask alike. */
  const hopeless = new Set<string>();
  // A roll-out alone may have busy workers end.
  for (const request of waiting(idle.length === 0)) {
    const alike = owners.has(request.tenant) ? undefined : askedBy(request);
    if (alike !== undefined && hopeless.has(alike)) {
      continue;
    }
    const helpful = victimsFor(request, { ...facts, ready, idle, victims, gone });
    if (helpful !== undefined) {
      return [...victims, ...helpful];
    }
    if (alike !== undefined) {
      hopeless.add(alike);
    }
  }
  return [...victims];
}

/** What a request asks for that has no worker to give; undefined where more than that decides. */
function askedBy(request: RoomRequest): string | undefined {
  const { gpus, leastBytes, expectedBytes } = request.need();
  return gpus === undefined && request.isRollout !== true
    ? `${request.tenant.organization} ${Math.max(leastBytes, expectedBytes)}`
    : undefined;
}

interface Evictable extends Pick<EvictionFacts, "shortage" | "gpus" | "gpuStayMs" | "nowMs"> {
  readonly ready: readonly ReadyWorker[];
  readonly idle: readonly ReadyWorker[];
  readonly victims: ReadonlySet<ReadyWorker>;
  readonly gone: AllocationSum;
}

/** The workers whose end makes room for the request; undefined when there are not enough. */
function victimsFor(request: RoomRequest, facts: Evictable): Set<ReadyWorker> | undefined {
  const { idle, victims, gone, shortage } = facts;
  const more = new Set<ReadyWorker>();
  const without = new AllocationSum(gone);
  const ofGpus = gpuVictims(request, facts);
  if (ofGpus === undefined) {
    return undefined;
  }
  for (const worker of ofGpus) {
    take(worker, more, without);
  }
  for (let short = shortage(request, without); short; short = shortage(request, without)) {
    const { organization } = short;
    const next = idle.find(
      (worker) =>
        !worker.isKept &&
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

/** The workers whose end leaves the GPUs that the request needs; undefined when none does. */
function gpuVictims(
  request: RoomRequest,
  { gpus, gpuStayMs, nowMs, ready, idle, victims, gone }: Evictable,
): readonly ReadyWorker[] | undefined {
  const need = request.need().gpus;
  if (need === undefined) {
    return [];
  }
  const isOwn = ({ room }: ReadyWorker): boolean => room.tenant === request.tenant;
  const isRollout = request.isRollout === true;
  const others = idle.filter(
    (worker) => !isOwn(worker) && worker.readyMs + gpuStayMs <= nowMs && !victims.has(worker),
  );
  const mayEnd = [
    ...others.filter(({ isKept }) => !isKept),
    ...ready.filter((worker) => isRollout && isOwn(worker)),
    ...others.filter(({ isKept }) => isKept && (isRollout || request.isNeeded())),
  ];
  const byGrant = new Map(mayEnd.flatMap((one) => (one.room.grant ? [[one.room.grant, one]] : [])));
  return gpus
    .blocking(need, request.tenant, { gone: gone.gpus, mayEnd: [...byGrant.keys()] })
    ?.flatMap((grant) => byGrant.get(grant) ?? []);
}

function take(worker: ReadyWorker, victims: Set<ReadyWorker>, gone: AllocationSum): void {
  const { tenant, bytes, grant } = worker.room;
  victims.add(worker);
  gone.add(tenant.organization, { workers: 1, memoryBytes: bytes });
  if (grant !== undefined) {
    gone.gpus.add(grant);
  }
}
