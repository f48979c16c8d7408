/**
 * The node's side of leases: opened when a worker is ready, renewed for all
 * workers together by one heartbeat, closed when a worker has ended. The
 * heartbeat comes from here, not from user code, so that a function which
 * blocks its event loop keeps its lease; its timeout bounds it instead.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { toProblem } from "../errors.ts";
import type { Storage } from "../storage/storage.ts";
import type { Task } from "../tasks/task.ts";
import type { Log } from "./log.ts";
import { Timer } from "./timer.ts";

const HEARTBEAT_MS = 5_000;
const LEASE_MS = 20_000;
/** Pause before a storage that does not answer is asked for a lease again. */
const OPEN_AGAIN_MS = 1_000;

export interface LeasesOptions {
  readonly storage: Storage;
  /** Written into the lease for people who look: the node. */
  readonly owner: string;
  readonly log: Log;
  readonly now: () => number;
  /**
   * Whether at the start every lease ends, not only those that have expired.
   * Default: where no other node can use the storage, whose leases are then
   * those of this node's own past.
   */
  readonly rescueAll?: boolean;
  /** Tasks went back to the queue, or failed, because their worker is gone. */
  onRescued(tasks: readonly Task[]): void;
  /** The storage no longer knows this worker's lease: what it runs is given to others. */
  onLost(leaseId: string): void;
  /** A heartbeat was answered, or was not. */
  onStorage(answers: boolean): void;
}

export class Leases implements AsyncDisposable {
  readonly #options: LeasesOptions;
  readonly #held = new Set<string>();
  readonly #opening = new Set<string>();
  readonly #closing = new Set<Promise<void>>();
  #heartbeat: Timer | undefined;

  constructor(options: LeasesOptions) {
    this.#options = options;
  }

  /**
   * Returns the attempts of nodes that are gone to the queue, and begins the
   * heartbeat.
   */
  async start(): Promise<void> {
    const { storage, now, onRescued, log } = this.#options;
    const { rescueAll = !storage.capabilities.shared } = this.#options;
    onRescued(await storage.rescueExpired({ nowMs: now(), all: rescueAll }));
    this.#heartbeat = new Timer(
      HEARTBEAT_MS,
      async () => {
        await this.#beat();
        this.#options.onStorage(true);
      },
      (err) => {
        this.#options.onStorage(false);
        log.error({ err }, "leases could not be renewed");
      },
    );
  }

  /**
   * Opens a lease, as soon as the storage answers. Rejects when the lease was
   * closed meanwhile.
   */
  async open(leaseId: string): Promise<void> {
    const { storage, owner, now, log } = this.#options;
    this.#opening.add(leaseId);
    while (this.#opening.has(leaseId)) {
      try {
        await storage.openLease({ leaseId, owner, nowMs: now(), ttlMs: LEASE_MS });
        this.#held.add(leaseId);
        if (this.#opening.delete(leaseId)) {
          return;
        }
        this.close(leaseId);
      } catch (err) {
        if (toProblem(err).reason !== "STORAGE_UNAVAILABLE") {
          this.#opening.delete(leaseId);
          throw err;
        }
        log.warn({ err, leaseId }, "a lease could not be opened; it is tried again");
        await sleep(OPEN_AGAIN_MS);
      }
    }
    throw new Error("the worker ended before its lease was opened");
  }

  /** Closes a lease; where the storage does not answer, its expiry does the same later. */
  close(leaseId: string): void {
    this.#opening.delete(leaseId);
    if (this.#held.delete(leaseId)) {
      const closing = this.#close(leaseId).finally(() => this.#closing.delete(closing));
      this.#closing.add(closing);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#heartbeat?.[Symbol.asyncDispose]();
    for (const leaseId of this.#held) {
      this.close(leaseId);
    }
    await Promise.all(this.#closing);
  }

  async #close(leaseId: string): Promise<void> {
    const { storage, now, log, onRescued } = this.#options;
    try {
      onRescued(await storage.closeLease({ leaseId, nowMs: now() }));
    } catch (err) {
      log.warn({ err, leaseId }, "a lease could not be closed; it will expire");
    }
  }

  async #beat(): Promise<void> {
    const { storage, now, onRescued, onLost } = this.#options;
    const leaseIds = [...this.#held];
    const renewed = new Set(
      leaseIds.length > 0
        ? await storage.renewLeases({ leaseIds, nowMs: now(), ttlMs: LEASE_MS })
        : [],
    );
    for (const leaseId of leaseIds) {
      if (!renewed.has(leaseId) && this.#held.delete(leaseId)) {
        onLost(leaseId);
      }
    }
    onRescued(await storage.rescueExpired({ nowMs: now() }));
  }
}
