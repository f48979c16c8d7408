/** Room: what one worker takes of its node's budget, from before its start until its process has ended. */

/** A pool as the budget sees it: it holds room, and says which of its workers may go. */
export interface Tenant {
  /** The organization's name; its workers are counted together. */
  readonly organization: string;
  /** Its workers that may be ended because somebody else needs their room. */
  idle(): Iterable<IdleWorker>;
}

export interface IdleWorker {
  readonly room: Room;
  /** When its last call ended or it became ready, by `performance.now`. */
  readonly sinceMs: number;
  /** Ends it, and starts no other in its place. */
  evict(): void;
}

/** The memory that a worker counts for. */
export interface MemoryNeed {
  /** However little it uses: workers grow, and a sum of small ones would let in too many. */
  readonly leastBytes: number;
  /** Before it has been measured. */
  readonly expectedBytes: number;
}

/** Wants to start one worker after another. */
export interface RoomRequest {
  readonly tenant: Tenant;
  /** True when a caller waits for the worker. */
  isUrgent(): boolean;
  /** What the next worker counts for. */
  need(): MemoryNeed;
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
  readonly #leastBytes: number;
  readonly #listener: RoomListener;
  #bytes: number;
  #left = false;
  /** True when its worker was evicted, and may not have ended yet. */
  evicted = false;

  constructor(tenant: Tenant, { leastBytes, expectedBytes }: MemoryNeed, listener: RoomListener) {
    this.tenant = tenant;
    this.#leastBytes = leastBytes;
    this.#bytes = Math.max(leastBytes, expectedBytes);
    this.#listener = listener;
  }

  /** The memory that it counts for. */
  get bytes(): number {
    return this.#bytes;
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
