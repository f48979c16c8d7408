/**
 * The leases of this node's workers, over all deployments. A lease is opened
 * when its worker is ready, renewed by the node's maintenance, and closed when
 * the worker has ended.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { toProblem } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import type { WorkerLease } from "../../pool/worker.ts";
import type { Storage } from "../../storage/storage.ts";
import type { Task } from "../../tasks/task.ts";

/** How long a worker's lease lasts without renewal; then its attempts go back to the queue. */
export const LEASE_DURATION_MS = 20_000;
/**
 * Interval at which a node's maintenance renews its leases and looks after its queues: a
 * quarter of a lease, so that three renewals may fail.
 */
export const LEASE_HEARTBEAT_INTERVAL_MS = 5_000;
/** Pause before a storage that does not answer is asked for a lease again. */
const LEASE_OPEN_RETRY_PAUSE_MS = 1_000;

interface LeasesOptions {
  readonly storage: Storage;
  readonly log: Log;
  readonly now: () => number;
  /** Tasks went back to the queue, or failed, because their worker is gone. */
  onRescued(tasks: readonly Task[]): void;
}

/** An open lease. */
interface HeldLease {
  readonly ttlMs: number;
  onLost(): void;
}

/** How long the lease of a worker lasts that goes on without its node for a while. */
export function leaseOutlasting(silenceMs: number): number {
  return Math.max(LEASE_DURATION_MS, silenceMs + LEASE_HEARTBEAT_INTERVAL_MS);
}

export class Leases implements AsyncDisposable {
  readonly #options: LeasesOptions;
  readonly #held = new Map<string, HeldLease>();
  readonly #opening = new Set<string>();
  readonly #closing = new Set<Promise<void>>();

  constructor(options: LeasesOptions) {
    this.#options = options;
  }

  /** Ids of the leases that are open, as far as this node knows. */
  get held(): readonly string[] {
    return [...this.#held.keys()];
  }

  /** The same, by how long they last without renewal. */
  byDuration(): ReadonlyMap<number, readonly string[]> {
    const found = new Map<number, string[]>();
    for (const [leaseId, { ttlMs }] of this.#held) {
      const ids = found.get(ttlMs) ?? [];
      ids.push(leaseId);
      found.set(ttlMs, ids);
    }
    return found;
  }

  /** The name of this node, for people who read the table of leases. */
  readonly owner = `pid ${process.pid}`;

  /**
   * Opens a lease, with retries until the storage answers. Rejects when the
   * lease is closed meanwhile. `onLost` is called when the storage no longer
   * knows the lease: other workers then run its tasks.
   */
  async open(
    leaseId: string,
    onLost: () => void,
    { session, isAdopted, ttlMs = LEASE_DURATION_MS }: WorkerLease = {},
  ): Promise<void> {
    if (isAdopted) {
      this.#held.set(leaseId, { ttlMs, onLost });
      return;
    }
    const { storage, now, log } = this.#options;
    const opened = {
      leaseId,
      owner: this.owner,
      ttlMs,
      ...(session && { session }),
    };
    this.#opening.add(leaseId);
    while (this.#opening.has(leaseId)) {
      try {
        await storage.openLease({ ...opened, nowMs: now() });
        this.#held.set(leaseId, { ttlMs, onLost });
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
        await sleep(LEASE_OPEN_RETRY_PAUSE_MS);
      }
    }
    throw new Error("the worker ended before its lease was opened");
  }

  /** Leases of `asked` that are not in `renewed` are lost. */
  renewed(asked: readonly string[], renewed: readonly string[]): void {
    const kept = new Set(renewed);
    for (const leaseId of asked) {
      const lease = this.#held.get(leaseId);
      if (!kept.has(leaseId) && lease !== undefined) {
        this.#held.delete(leaseId);
        lease.onLost();
      }
    }
  }

  /** Leaves a lease open: its worker goes on without this node, and another one adopts it. */
  leave(leaseId: string): void {
    this.#opening.delete(leaseId);
    this.#held.delete(leaseId);
  }

  /**
   * Closes a lease, after the ends of its attempts were recorded: an attempt without an end counts
   * as lost with its node. If the storage does not answer, the lease expires later to the same
   * effect.
   */
  close(leaseId: string, recorded?: Promise<void>): void {
    this.#opening.delete(leaseId);
    const closing = this.#close(leaseId, recorded).finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }

  /** Resolves when no lease is being closed any more. */
  async closed(): Promise<void> {
    await Promise.all(this.#closing);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const leaseId of this.held) {
      this.close(leaseId);
    }
    await this.closed();
  }

  async #close(leaseId: string, recorded: Promise<void> | undefined): Promise<void> {
    const { storage, now, log, onRescued } = this.#options;
    if (recorded) {
      await recorded;
    }
    if (!this.#held.delete(leaseId)) {
      return;
    }
    try {
      onRescued(await storage.closeLease({ leaseId, nowMs: now() }));
    } catch (err) {
      log.warn({ err, leaseId }, "a lease could not be closed; it will expire");
    }
  }
}
