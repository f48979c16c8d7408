/** The room that one pool holds of its node's budget, and the room that it waits for. */
import { MIN_WORKER_MEMORY_BYTES } from "../limits.ts";
import type { Worker } from "../worker.ts";
import type { ServiceCode } from "../worker-options.ts";
import { NodeBudget } from "./budget.ts";
import type { ReadyWorker, Room, RoomNeed, RoomRequest, Tenant } from "./room.ts";

/** Where a pool gets room, and what it keeps of it when others need it. */
export interface RoomSource {
  readonly budget: NodeBudget;
  /** The name of the organization, whose workers are counted together. */
  readonly organization: string;
  /** The name of the deployment in it. */
  readonly deployment: string;
  /** The number of workers that are not evicted. */
  readonly min: () => number;
}

interface PoolRoomOptions {
  /** Default: room without end. */
  readonly source: RoomSource | undefined;
  readonly isUrgent: () => boolean;
  readonly isNeeded: () => boolean;
  /** The workers that take calls. */
  readonly workers: () => readonly Worker[];
  readonly evict: (worker: Worker) => void;
  /** There is room for a worker that was asked for. */
  readonly again: () => void;
  /** `waiting` may have changed. */
  readonly onWaiting: () => void;
}

const ENDLESS = { workers: Number.POSITIVE_INFINITY, memoryBytes: Number.POSITIVE_INFINITY };

export class DeploymentRoom implements Tenant {
  readonly organization: string;
  readonly deployment: string;
  readonly #options: PoolRoomOptions;
  readonly #budget: NodeBudget;
  readonly #rooms = new Map<Worker, { readonly room: Room; readyMs: number }>();
  /** The requests that wait. */
  readonly #waiting = new Set<RoomRequest>();
  readonly #request: RoomRequest;
  /** The most that a worker of this service used when it was measured. */
  #knownBytes = 0;
  #service: ServiceCode | undefined;

  constructor(options: PoolRoomOptions) {
    const { source, isUrgent, again } = options;
    this.#options = options;
    this.organization = source?.organization ?? "";
    this.deployment = source?.deployment ?? "";
    this.#budget = source?.budget ?? new NodeBudget({ node: ENDLESS, organization: ENDLESS });
    const need = (): RoomNeed => this.#need(this.#service);
    // More workers are no need for which others give up their last one.
    const isNeeded = (): boolean => this.#rooms.size === 0 && options.isNeeded();
    this.#request = { tenant: this, isUrgent, isNeeded, need, again };
  }

  /** The limit that leaves no room for a worker of what serves; undefined when none waits. */
  get waiting(): string | undefined {
    return this.#waiting.has(this.#request) ? this.#shortage(this.#request) : undefined;
  }

  /** The limit that leaves no room for the first worker of a roll-out; undefined when it does not wait. */
  get rolloutWaits(): string | undefined {
    const [request] = [...this.#waiting].filter((each) => each !== this.#request);
    return request && this.#shortage(request);
  }

  /** Whether GPUs are all that a worker waits for, of what serves or of a roll-out. */
  get isShortOfGpus(): boolean {
    return [...this.#waiting].some((request) => this.#budget.isShortOfGpus(request));
  }

  /** True while the first worker of a roll-out waits for GPUs, which old workers may have to leave. */
  get rolloutWaitsForGpus(): boolean {
    return [...this.#waiting].some(
      (request) => request.isRollout === true && request.need().gpus !== undefined,
    );
  }

  /** The service whose workers are asked for from now on. */
  serve(service: ServiceCode): void {
    this.#service = service;
    this.#knownBytes = 0;
  }

  /** Room for one more worker; undefined while the node is full, and `again` is called later. */
  tryEnter(): Room | undefined {
    if (this.rolloutWaitsForGpus) {
      // They become free for it, and no old worker takes them.
      this.forget();
      return undefined;
    }
    const room = this.#budget.tryEnter(this.#request);
    this.#setWaiting(this.#request, room === undefined);
    return room;
  }

  /** Asks for no more workers. */
  forget(): void {
    this.#budget.forget(this.#request);
    this.#setWaiting(this.#request, false);
  }

  /** Room for the first worker of a roll-out. Rejects with the signal's reason. */
  async enterRollout(service: ServiceCode, signal: AbortSignal): Promise<Room> {
    const { isUrgent, isNeeded, again } = this.#options;
    const need = (): RoomNeed => this.#need(service);
    const request = {
      ...{ tenant: this, isUrgent, isNeeded, need },
      ...{ again: () => {}, isRollout: true },
    };
    const free = this.#budget.takeFree(request);
    if (free) {
      return free;
    }
    this.#setWaiting(request, true);
    try {
      return await this.#budget.enter(request, signal);
    } finally {
      this.#setWaiting(request, false);
      if (need().gpus !== undefined) {
        again();
      }
    }
  }

  /** Room for one more worker of a roll-out, if there is some now. */
  takeFree(service: ServiceCode): Room | undefined {
    return this.#budget.takeFree({ ...this.#request, need: () => this.#need(service) });
  }

  /** The worker takes this room until its process has ended. */
  hold(worker: Worker, room: Room): void {
    this.#rooms.set(worker, { room, readyMs: 0 });
    this.#budget.hold(room, worker);
    void worker.exited.then(({ cause }) => {
      this.#rooms.delete(worker);
      if (cause === "gpu") {
        this.#budget.gpuFaulted(room);
      }
      room.leave();
    });
  }

  /** The worker takes calls. */
  ready(worker: Worker): void {
    const held = this.#rooms.get(worker);
    if (held) {
      held.readyMs = performance.now();
    }
  }

  /** A worker uses this much memory now. */
  measured(worker: Worker, bytes: number): void {
    this.#knownBytes = Math.max(this.#knownBytes, bytes);
    this.#rooms.get(worker)?.room.measured(bytes);
  }

  *workers(): Iterable<ReadyWorker> {
    const { source, workers, evict } = this.#options;
    const all = workers();
    let spare = all.length - (source?.min() ?? Number.POSITIVE_INFINITY);
    const ready = all
      .filter(({ loaded }) => loaded)
      .flatMap((worker) => {
        const held = this.#rooms.get(worker);
        if (held === undefined) {
          return [];
        }
        const { room, readyMs } = held;
        const idleSinceMs = worker.capacity.idle
          ? Math.max(worker.capacity.idleSinceMs, readyMs)
          : Number.POSITIVE_INFINITY;
        return [{ room, readyMs, idleSinceMs, evict: () => evict(worker) }];
      })
      .sort((a, b) => a.idleSinceMs - b.idleSinceMs);
    for (const worker of ready) {
      yield { ...worker, isKept: spare-- <= 0 };
    }
  }

  #need(service: ServiceCode | undefined): RoomNeed {
    const { limits, gpus } = service?.revision ?? {};
    const leastBytes = Math.min(
      limits?.memoryBytes ?? MIN_WORKER_MEMORY_BYTES,
      MIN_WORKER_MEMORY_BYTES,
    );
    const expectedBytes = service === this.#service ? this.#knownBytes : 0;
    return { leastBytes, expectedBytes, ...(gpus !== undefined && { gpus }) };
  }

  #shortage(request: RoomRequest): string {
    return this.#budget.shortage(request) ?? "others come first";
  }

  #setWaiting(request: RoomRequest, waits: boolean): void {
    if (waits !== this.#waiting.has(request)) {
      this.#waiting[waits ? "add" : "delete"](request);
      this.#options.onWaiting();
    }
  }
}
