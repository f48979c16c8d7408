/** Room: what one worker takes of its node's budget, from before its start until its process has ended. */
import type { WorkerGpu } from "../gpus/gpus.ts";
import type { GpuGrant, GpuHolder, GpuNeed } from "../gpus/ledger.ts";

/** A pool as the budget sees it: it holds room, and says which of its workers may go. */
export interface Tenant extends GpuHolder {
  /** Its workers that take calls, of which some may be ended because somebody else needs their room. */
  workers(): Iterable<ReadyWorker>;
}

export interface ReadyWorker {
  readonly room: Room;
  /** When it became ready, by `performance.now`. */
  readonly readyMs: number;
  /** When its last call ended or it became ready; infinite while it has a call. */
  readonly idleSinceMs: number;
  /** One of the minimum of its deployment. */
  readonly isKept: boolean;
  /** Ends it, when its calls have ended, and starts no other in its place. */
  evict(): void;
}

/** What a worker counts for. */
export interface RoomNeed {
  /** Memory, however little it uses: workers grow, and a sum of small ones would let in too many. */
  readonly leastBytes: number;
  /** Memory before it has been measured. */
  readonly expectedBytes: number;
  /** Default: none. */
  readonly gpus?: GpuNeed;
}

/** Wants to start one worker after another. */
export interface RoomRequest {
  readonly tenant: Tenant;
  /** True when a caller waits for the worker. */
  isUrgent(): boolean;
  /** True when calls or tasks wait for the worker, and its deployment has no other here. */
  isNeeded(): boolean;
  /** What the next worker counts for. */
  need(): RoomNeed;
  /** There is room; call `tryEnter` again. */
  again(): void;
  /** For the new worker of a roll-out, which will serve in the place of an old one. */
  readonly isRollout?: boolean;
}

/** Tells the budget what becomes of a room that it gave. */
interface RoomListener {
  onMeasured(room: Room, beforeBytes: number): void;
  onLeft(room: Room): void;
}

export class Room {
  readonly tenant: Tenant;
  /** What it has of GPUs; undefined: nothing. */
  readonly grant: GpuGrant | undefined;
  readonly #leastBytes: number;
  readonly #listener: RoomListener;
  #bytes: number;
  #left = false;
  /** True when its worker was evicted, and may not have ended yet. */
  evicted = false;

  constructor(
    { tenant, grant }: Pick<Room, "tenant" | "grant">,
    { leastBytes, expectedBytes }: RoomNeed,
    listener: RoomListener,
  ) {
    this.tenant = tenant;
    this.grant = grant;
    this.#leastBytes = leastBytes;
    this.#bytes = Math.max(leastBytes, expectedBytes);
    this.#listener = listener;
  }

  /** The memory that it counts for. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The GPUs of its worker. */
  get gpus(): readonly WorkerGpu[] {
    return this.grant?.gpus ?? [];
  }

  /** Its worker uses this much memory now. */
  measured(bytes: number): void {
    const before = this.#bytes;
    this.#bytes = Math.max(this.#leastBytes, bytes);
    if (this.#bytes !== before && !this.#left) {
      this.#listener.onMeasured(this, before);
    }
  }

  /** Its worker has ended; a second call does nothing. */
  leave(): void {
    if (!this.#left) {
      this.#left = true;
      this.#listener.onLeft(this);
    }
  }
}
