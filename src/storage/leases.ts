/** The part of the storage port for leases: the right of one worker to hold attempts, for a time. */
import type { Task } from "../tasks/task.ts";

/** A running task, and the lease that it runs under. */
export interface LeasedTask {
  readonly task: Task;
  readonly leaseId: string;
}

export interface LeaseStorage {
  /** Opens a lease: one worker's right to hold attempts until it expires. */
  openLease(parameters: {
    readonly leaseId: string;
    /** The holder's name, for people who read the table. */
    readonly owner: string;
    readonly nowMs: number;
    readonly ttlMs: number;
    /**
     * Digest of the secret of a worker on another machine, with which another node may adopt the
     * lease: it outlives the node that opened it. Default: it ends with its node.
     */
    readonly session?: string;
  }): Promise<void>;

  /**
   * Moves everything under a lease to a new one, if the lease is open and has this session, and
   * returns its attempts as they now are; undefined otherwise. The lease before has ended then, so
   * the node that held it can change nothing any more.
   */
  adoptLease(parameters: {
    readonly leaseId: string;
    readonly session: string;
    readonly newLeaseId: string;
    readonly newSession: string;
    readonly owner: string;
    readonly nowMs: number;
    readonly ttlMs: number;
  }): Promise<LeasedTask[] | undefined>;

  /** Renews leases. Returns those that still existed, in the given order. */
  renewLeases(parameters: {
    readonly leaseIds: readonly string[];
    readonly nowMs: number;
    readonly ttlMs: number;
  }): Promise<string[]>;

  /**
   * Ends a lease. Its remaining attempts are treated as in `rescueExpired`.
   * Returns the changed tasks.
   */
  closeLease(parameters: { readonly leaseId: string; readonly nowMs: number }): Promise<Task[]>;

  /**
   * Ends expired leases (or, with `all`, every lease without a session) and requeues their
   * attempts as those of lost nodes: at once, or after a pause from the fourth
   * on (`restartAfterLostNode`). A task that lost too many fails. Returns the
   * changed tasks.
   */
  rescueExpired(parameters: { readonly nowMs: number; readonly all?: boolean }): Promise<Task[]>;
}
