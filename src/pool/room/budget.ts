/**
 * Admission control: the budget of a node, in workers and in memory, in all and per
 * organization. A worker needs room before it starts, and gives it back when its
 * process has ended.
 *
 * - Memory is what workers use, not what their limits allow: a limit is for the
 *   worst moment of one worker, and most use a small part of it. A worker that has
 *   not been measured yet counts for what others of its revision used.
 * - A request that finds no room waits. Freed room goes to the organization with the
 *   fewest workers on the node; within it, first to a deployment that a caller waits
 *   for, then to the one that waits longest (`waiting.ts`).
 * - For a request that waits, idle workers are evicted, the least recently used first
 *   (`eviction.ts`).
 * - Workers that grew beyond the budget are not killed for it: idle ones go, and no
 *   others start. Each has a limit of its own (`limits.ts`).
 * - One roll-out at a time may go beyond the budget by one worker if its deployment
 *   already holds room: its old worker serves until the new one does, and would never
 *   make room for it.
 * - A worker that needs GPUs has them from its room on (`gpus/ledger.ts`). No roll-out goes beyond
 *   them: where all are taken, old workers of its own deployment end first.
 */

import { GpuLedger, type GpuUse } from "../gpus/ledger.ts";
import type { SharingWorker } from "../gpus/shares.ts";
import { type Allocation, AllocationSum } from "./allocation.ts";
import { findEvictions } from "./eviction.ts";
import { Room, type RoomRequest } from "./room.ts";
import { type BudgetLimits, type Shortage, shortOf, toldOf } from "./shortage.ts";
import { isLate, WaitingRequests } from "./waiting.ts";

/**
 * Interval at which a budget looks for idle workers while somebody waits for room: that a
 * worker becomes idle is a part of every call and tells nobody.
 */
const IDLE_LOOK_INTERVAL_MS = 250;

/** What is taken of the budget. */
export interface BudgetUse extends Allocation {
  /** Requests that wait for room. */
  readonly waiting: number;
  /** Workers that were evicted since the node started. */
  readonly evictions: number;
  readonly gpus: readonly GpuUse[];
}

/** How long a worker keeps its GPUs at least before an idle one gives them to others. */
const GPU_STAY_MS = 60_000;

interface NodeBudgetOptions {
  /** Default: the machine has no GPUs. */
  readonly gpus?: GpuLedger;
  /** Default: a minute. */
  readonly gpuStayMs?: number;
  /** Something was taken, given back or asked for. */
  readonly onChange?: (use: BudgetUse) => void;
  /** The clock of `ReadyWorker`. Default: `performance.now`. */
  readonly nowMs?: () => number;
}

export class NodeBudget implements Disposable {
  readonly #limits: BudgetLimits;
  readonly #onChange: (use: BudgetUse) => void;
  readonly #nowMs: () => number;
  readonly #gpus: GpuLedger;
  readonly #gpuStayMs: number;
  readonly #rooms = new Set<Room>();
  readonly #taken = new AllocationSum();
  /** The part of `#taken` that was evicted and has not ended yet. */
  readonly #leaving = new AllocationSum();
  readonly #waiting = new WaitingRequests();
  /** The room beyond the limits, of a roll-out. */
  #surge: Room | undefined;
  #evictions = 0;
  #offering = false;
  #offersSoon = false;
  #later: NodeJS.Timeout | undefined;

  constructor(
    limits: BudgetLimits,
    {
      onChange = () => {},
      nowMs = () => performance.now(),
      gpus = new GpuLedger(),
      gpuStayMs = GPU_STAY_MS,
    }: NodeBudgetOptions = {},
  ) {
    this.#limits = limits;
    this.#gpus = gpus;
    this.#gpuStayMs = gpuStayMs;
    this.#onChange = onChange;
    this.#nowMs = nowMs;
    this.#changed();
  }

  get use(): BudgetUse {
    return {
      ...this.#taken.node,
      waiting: this.#waiting.size,
      evictions: this.#evictions,
      gpus: this.#gpus.use,
    };
  }

  /** Takes room for one worker. Without room, returns undefined and calls `request.again` later. */
  tryEnter(request: RoomRequest): Room | undefined {
    const room = this.takeFree(request);
    if (room === undefined) {
      this.#waiting.add(request);
      this.#changed();
      this.#offerSoon();
    } else {
      this.forget(request);
    }
    return room;
  }

  /** The same without waiting. */
  takeFree(request: RoomRequest): Room | undefined {
    if (!this.#fits(request)) {
      return undefined;
    }
    const first = this.#first();
    if (first !== undefined && this.#precedes(first, request)) {
      return undefined;
    }
    const isSurge = this.#shortage(request) !== undefined;
    const { tenant } = request;
    const need = request.need();
    const grant = need.gpus && this.#gpus.take(need.gpus, tenant);
    const room = new Room({ tenant, grant }, need, {
      onMeasured: (measured, beforeBytes) => this.#measured(measured, beforeBytes),
      onLeft: (left) => this.#left(left),
    });
    this.#rooms.add(room);
    this.#taken.add(tenant.organization, { workers: 1, memoryBytes: room.bytes });
    if (isSurge) {
      this.#surge = room;
    }
    this.#changed();
    return room;
  }

  /** Waits for room for one worker and takes it. Rejects with the signal's reason. */
  async enter(request: Omit<RoomRequest, "again">, signal?: AbortSignal): Promise<Room> {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<Room>();
    const waiting: RoomRequest = {
      tenant: request.tenant,
      isUrgent: () => request.isUrgent(),
      isNeeded: () => request.isNeeded(),
      need: () => request.need(),
      // At once: room that was offered and is not taken goes to the next one.
      again: () => {
        const room = this.tryEnter(waiting);
        if (room) {
          resolve(room);
        }
      },
      isRollout: request.isRollout ?? false,
    };
    const giveUp = (): void => {
      this.forget(waiting);
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", giveUp, { once: true });
    waiting.again();
    try {
      return await promise;
    } finally {
      signal?.removeEventListener("abort", giveUp);
    }
  }

  /** Removes a request from the waiting ones. */
  forget(request: RoomRequest): void {
    if (this.#waiting.delete(request)) {
      this.#changed();
    }
  }

  /** For people: the limit that leaves no room for the request; undefined when there is room. */
  shortage(request: Asked): string | undefined {
    const short = this.#shortage(request);
    const { gpus } = request.need();
    return short
      ? toldOf(short, this.#limits)
      : gpus && !this.#gpus.has(gpus, request.tenant)
        ? this.#gpus.shortage(gpus, request.tenant)
        : undefined;
  }

  /** Whether GPUs are all that there is no room of. */
  isShortOfGpus(request: Asked): boolean {
    const { gpus } = request.need();
    return (
      gpus !== undefined &&
      this.#shortage(request) === undefined &&
      !this.#gpus.has(gpus, request.tenant)
    );
  }

  /** The worker has this room, and is held to its share of GPUs. */
  hold({ grant }: Room, worker: SharingWorker): void {
    if (grant !== undefined) {
      this.#gpus.hold(grant, worker);
    }
  }

  /** The worker of this room has ended because its GPU could not be used any more. */
  gpuFaulted({ grant }: Room): void {
    if (grant !== undefined) {
      this.#gpus.faulted(grant);
      this.#changed();
    }
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#later);
    this.#waiting.clear();
  }

  /** The limit that leaves no room, once the `gone` workers have left. */
  #shortage(request: Asked, gone?: AllocationSum): Shortage | undefined {
    const { organization } = request.tenant;
    const { leastBytes, expectedBytes } = request.need();
    const bytes = Math.max(leastBytes, expectedBytes);
    const { node, organization: per } = this.#limits;
    const onNode = shortOf(bytes, { taken: this.#taken.node, gone: gone?.node, limit: node });
    if (onNode !== undefined) {
      return { of: onNode };
    }
    const own = { taken: this.#taken.of(organization), gone: gone?.of(organization), limit: per };
    const within = shortOf(bytes, own);
    return within && { of: within, organization };
  }

  #fits(request: RoomRequest): boolean {
    const { gpus } = request.need();
    return (
      (this.#shortage(request) === undefined || this.#maySurge(request)) &&
      (gpus === undefined || this.#gpus.has(gpus, request.tenant))
    );
  }

  #maySurge({ isRollout, tenant }: RoomRequest): boolean {
    return (
      isRollout === true &&
      this.#surge === undefined &&
      this.#taken.node.workers <= this.#limits.node.workers &&
      [...this.#rooms].some((room) => room.tenant === tenant)
    );
  }

  /** The waiting request whose turn it is, of those that there is room for. */
  #first(): RoomRequest | undefined {
    for (const request of this.#inTurn((name) => this.#hasRoom(name))) {
      if (this.#fits(request)) {
        return request;
      }
    }
    return undefined;
  }

  #inTurn(hasRoom: (organization: string) => boolean): Iterable<RoomRequest> {
    const held = (name: string): number => this.#taken.of(name).workers;
    return this.#waiting.inTurn({ held, hasRoom });
  }

  /** False where no worker of an organization fits, however small it is. */
  #hasRoom(organization: string): boolean {
    const { node, organization: per } = this.#limits;
    const own = { taken: this.#taken.of(organization), gone: undefined, limit: per };
    const all = { taken: this.#taken.node, gone: undefined, limit: node };
    return shortOf(0, all) === undefined && shortOf(0, own) === undefined;
  }

  /** True when it is this request's turn before the other's, if both wait equally long. */
  #precedes(request: RoomRequest, other: RoomRequest): boolean {
    const held = ({ tenant }: RoomRequest): number => this.#taken.of(tenant.organization).workers;
    const calm = (asked: RoomRequest): number => (asked.isUrgent() ? 0 : 1);
    const late = (asked: RoomRequest): number => (isLate(asked) ? 0 : 1);
    const difference =
      late(request) - late(other) || held(request) - held(other) || calm(request) - calm(other);
    return request !== other && difference < 0;
  }

  #measured({ tenant, bytes, evicted }: Room, beforeBytes: number): void {
    const change = { workers: 0, memoryBytes: bytes - beforeBytes };
    this.#taken.add(tenant.organization, change);
    if (evicted) {
      this.#leaving.add(tenant.organization, change);
    }
    this.#changed();
    this.#offerSoon();
  }

  #left(room: Room): void {
    const { tenant, bytes, evicted, grant } = room;
    const given = { workers: -1, memoryBytes: -bytes };
    this.#rooms.delete(room);
    this.#taken.add(tenant.organization, given);
    if (evicted) {
      this.#leaving.add(tenant.organization, given);
    }
    if (grant !== undefined) {
      this.#gpus.give(grant);
      this.#leaving.gpus.delete(grant);
    }
    if (this.#surge === room) {
      this.#surge = undefined;
    }
    this.#changed();
    this.#offerSoon();
  }

  /** Once for all that happens in one turn. */
  #offerSoon(): void {
    if (!this.#offersSoon) {
      this.#offersSoon = true;
      queueMicrotask(() => {
        this.#offersSoon = false;
        this.#offer();
      });
    }
  }

  /** Calls the waiting requests that there is room for, one by one, and makes room for others. */
  #offer(): void {
    if (this.#offering) {
      return;
    }
    this.#offering = true;
    this.#endSurge();
    for (let next = this.#first(); next; next = this.#first()) {
      this.#waiting.delete(next);
      this.#changed();
      next.again();
    }
    this.#offering = false;
    this.#makeRoom();
  }

  /** The room of a roll-out is an ordinary one as soon as all fit. */
  #endSurge(): void {
    const { workers, memoryBytes } = this.#taken.node;
    const { node } = this.#limits;
    if (workers <= node.workers && memoryBytes <= node.memoryBytes) {
      this.#surge = undefined;
    }
  }

  #makeRoom(): void {
    clearTimeout(this.#later);
    const evictions = findEvictions({
      tenants: new Set([...this.#rooms].map(({ tenant }) => tenant)),
      nowMs: this.#nowMs(),
      waiting: (rolloutsOnly) => this.#inTurn(() => !rolloutsOnly),
      leaving: this.#leaving,
      shortage: (request, gone) => this.#shortage(request, gone),
      gpus: this.#gpus,
      gpuStayMs: this.#gpuStayMs,
      isOver: (organization, gone) => this.#isOver(organization, gone),
    });
    for (const { room, evict } of evictions) {
      room.evicted = true;
      this.#leaving.add(room.tenant.organization, { workers: 1, memoryBytes: room.bytes });
      if (room.grant !== undefined) {
        this.#leaving.gpus.add(room.grant);
      }
      this.#evictions += 1;
      evict();
    }
    if (this.#waiting.size > 0) {
      this.#later = setTimeout(() => this.#offer(), IDLE_LOOK_INTERVAL_MS).unref();
    }
    this.#changed();
  }

  /** True when the workers that stay use more memory than they may. */
  #isOver(organization: string, gone: AllocationSum): boolean {
    const { node, organization: per } = this.#limits;
    const own = this.#taken.of(organization).memoryBytes - gone.of(organization).memoryBytes;
    const all = this.#taken.node.memoryBytes - gone.node.memoryBytes;
    return all > node.memoryBytes || own > per.memoryBytes;
  }

  #changed(): void {
    this.#onChange(this.use);
  }
}

type Asked = Pick<RoomRequest, "tenant" | "need">;
