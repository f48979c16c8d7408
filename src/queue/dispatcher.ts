/**
 * The dispatcher of one deployment: assigns queued tasks to free slots.
 *
 * A task starts in one of two ways:
 * - A submit finds a slot free and nothing waiting: the task is stored as
 *   already claimed and starts when that is committed. One write, no search.
 * - Otherwise tasks are claimed from the storage, at most as many as there are
 *   free slots. A hint triggers the claim: a submit, a freed slot, a new worker,
 *   a delayed task that becomes due, or the node's maintenance, which catches
 *   the hints that got lost.
 *
 * `#backlog` holds the endpoints that may have tasks waiting. It errs on the
 * safe side: an endpoint leaves it only when a claim returned fewer tasks than
 * it asked for, so a submit never overtakes a waiting task.
 */

import type { Log } from "../log/log.ts";
import type { Pool, Slot } from "../pool/pool.ts";
import type { EndpointManifest, ServiceManifest } from "../protocol/manifest.ts";
import type { ClaimedTask, NewTask, Storage, SubmitOutcome } from "../storage/storage.ts";
import type { TaskFailure } from "../tasks/task.ts";
import { type Attempts, attemptOf } from "./attempts.ts";
import { ClaimRecovery } from "./claim-recovery.ts";
import { DueTasks } from "./due-tasks.ts";

/** Tasks of one endpoint claimed at once. */
const MAX_CLAIMED_TASKS = 200;

export interface DispatcherOptions {
  readonly deploymentId: string;
  readonly storage: Storage;
  readonly pool: Pool;
  readonly attempts: Attempts;
  readonly log: Log;
  readonly now: () => number;
  /** The storage answered a claim, or failed to. */
  onStorage(answers: boolean): void;
  /** Tasks may be waiting that have no free slot. */
  onFull?(): void;
}

type Refusal = (claimed: ClaimedTask) => TaskFailure | undefined;

export class Dispatcher implements AsyncDisposable {
  readonly #options: DispatcherOptions;
  readonly #backlog = new Set<string>();
  /** Endpoints hinted at since the claim under way was sent. */
  readonly #hinted = new Set<string>();
  readonly #recovery: ClaimRecovery;
  readonly #due: DueTasks;
  #endpoints = new Map<string, EndpointManifest>();
  #claiming: Promise<void> | undefined;
  #again = false;
  #started = false;
  #stopped = false;
  #refusal: Refusal = () => undefined;
  #announce: ((endpoint: string) => void) | undefined;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#recovery = new ClaimRecovery(options);
    this.#due = new DueTasks(options, () => this.hintAll());
  }

  /**
   * Begins to claim tasks for the task endpoints of this manifest; may be called
   * again with another one. A claimed task for which `refusal` returns a failure
   * fails with it and does not run.
   */
  start(manifest: ServiceManifest, refusal: Refusal = () => undefined): void {
    this.#refusal = refusal;
    const tasks = manifest.endpoints.filter(({ kind }) => kind === "task");
    this.#endpoints = new Map(tasks.map((endpoint) => [endpoint.name, endpoint]));
    for (const endpoint of this.#endpoints.keys()) {
      this.#backlog.add(endpoint);
    }
    if (!this.#started) {
      this.#started = true;
      void this.#due.find();
    }
    this.wake();
  }

  /** Stores a task, and starts it at once when a slot is free and no task waits. */
  submit(task: NewTask, endpoint: EndpointManifest): Promise<SubmitOutcome> {
    const { pool } = this.#options;
    const immediate =
      !this.#stopped && task.runAtMs <= task.createdAtMs && !this.#backlog.has(endpoint.name);
    const slot = immediate ? pool.reserve(endpoint) : undefined;
    return this.#store(task, endpoint, slot);
  }

  async #store(task: NewTask, endpoint: EndpointManifest, slot?: Slot): Promise<SubmitOutcome> {
    const { storage, attempts } = this.#options;
    const claiming = slot && this.#recovery.callBegins();
    try {
      const [outcome] = await storage.submitTasks({
        tasks: [slot ? { ...task, leaseId: slot.workerId } : task],
      });
      if (outcome === undefined) {
        throw new Error("the storage answered nothing for a submitted task");
      }
      if (outcome.outcome === "stored" && outcome.task.status === "running" && slot) {
        attempts.start(
          { task: outcome.task, leaseId: slot.workerId, arguments: task.arguments },
          endpoint,
          slot,
        );
        return outcome;
      }
      slot?.release();
      if (outcome.outcome === "stored") {
        this.stored([task]);
      }
      return outcome;
    } catch (err) {
      if (slot) {
        slot.release();
        this.#recovery.suspect([slot.workerId]);
      }
      throw err;
    } finally {
      claiming?.end();
    }
  }

  /** These tasks were stored as queued, to be claimed now or when they are due. */
  stored(tasks: readonly NewTask[]): void {
    const ready = tasks.filter(({ runAtMs, createdAtMs }) => runAtMs <= createdAtMs);
    for (const { runAtMs, createdAtMs } of tasks) {
      if (runAtMs > createdAtMs) {
        this.#due.expect(runAtMs);
      }
    }
    const endpoints = new Set(ready.map(({ endpoint }) => endpoint));
    for (const endpoint of endpoints) {
      this.#announce?.(endpoint);
    }
    this.#hint(endpoints);
  }

  /** From now on, `announce` tells other nodes which endpoints have tasks to claim. */
  announceTo(announce: (endpoint: string) => void): void {
    this.#announce = announce;
  }

  /** Tasks of any endpoint may be waiting. */
  hintAll(): void {
    this.#hint(this.#endpoints.keys());
  }

  /** A task of this endpoint went back to the queue, to be claimed from this time on. */
  requeued(endpoint: string, runAtMs: number): void {
    if (runAtMs > this.#options.now()) {
      this.#due.expect(runAtMs);
    } else {
      this.#announce?.(endpoint);
      this.hint(endpoint);
    }
  }

  /** Tasks of this endpoint may be waiting. */
  hint(endpoint: string): void {
    this.#hint([endpoint]);
  }

  /** A slot became free. */
  slotFree(): void {
    this.wake();
  }

  /** Claims waiting tasks for the slots that are free now. */
  wake(): void {
    if (this.#stopped || this.#backlog.size === 0) {
      return;
    }
    if (this.#claiming) {
      this.#again = true;
      return;
    }
    this.#claiming = this.#claim()
      .catch((err: unknown) => this.#options.log.error({ err }, "tasks could not be claimed"))
      .finally(() => {
        this.#claiming = undefined;
        if (this.#again) {
          this.#again = false;
          this.wake();
        }
      });
  }

  /** Stops claiming; resolves when no claim is under way. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped = true;
    this.#due[Symbol.dispose]();
    await this.#claiming;
    await this.#recovery[Symbol.asyncDispose]();
  }

  /** Wakes once, so that one claim covers all. Ignores endpoints that this revision lacks. */
  #hint(endpoints: Iterable<string>): void {
    for (const endpoint of endpoints) {
      if (this.#endpoints.has(endpoint)) {
        this.#backlog.add(endpoint);
        this.#hinted.add(endpoint);
      }
    }
    this.wake();
  }

  async #claim(): Promise<void> {
    // One message from a worker may free many slots in turn: one claim covers all of them.
    await Promise.resolve();
    const slots = this.#reserve();
    const claims = [...slots.values()].flatMap((free) => countByWorker(free));
    const { deploymentId, storage, now, onStorage, onFull } = this.#options;
    if (slots.size < this.#backlog.size) {
      onFull?.();
    }
    if (claims.length === 0) {
      return;
    }
    this.#hinted.clear();
    const claiming = this.#recovery.callBegins();
    try {
      for (const claimed of await storage.claimTasks({ deploymentId, nowMs: now(), claims })) {
        this.#start(claimed, slots.get(claimed.task.endpoint) ?? []);
      }
      onStorage(true);
      for (const [endpoint, unused] of slots) {
        if (unused.length === 0) {
          this.#again = true;
        } else if (!this.#hinted.has(endpoint)) {
          this.#backlog.delete(endpoint);
        }
      }
    } catch (err) {
      this.#recovery.suspect(claims.map(({ leaseId }) => leaseId));
      onStorage(false);
      throw err;
    } finally {
      claiming.end();
      for (const slot of [...slots.values()].flat()) {
        slot.release();
      }
    }
  }

  #start(claimed: ClaimedTask, free: Slot[]): void {
    const refusal = this.#refusal(claimed);
    if (refusal) {
      this.#options.attempts.refuse(claimed, refusal);
      // Its slot was not used, and more may be waiting.
      this.#hinted.add(claimed.task.endpoint);
      this.#again = true;
      return;
    }
    const endpoint = this.#endpoints.get(claimed.task.endpoint);
    const index = free.findIndex(({ workerId }) => workerId === claimed.leaseId);
    const [slot] = index < 0 ? [] : free.splice(index, 1);
    if (endpoint && slot) {
      this.#options.attempts.start(claimed, endpoint, slot);
    } else {
      // The service was replaced by one without this endpoint while the claim was under way.
      this.#options.attempts.giveBack(attemptOf(claimed));
    }
  }

  /** The free slots of the endpoints that may have tasks waiting. */
  #reserve(): Map<string, Slot[]> {
    const slots = new Map<string, Slot[]>();
    for (const name of this.#backlog) {
      const endpoint = this.#endpoints.get(name);
      const free = endpoint ? this.#options.pool.reserveAll(endpoint, MAX_CLAIMED_TASKS) : [];
      if (free.length > 0) {
        slots.set(name, free);
      }
    }
    return slots;
  }
}

function countByWorker(
  slots: readonly Slot[],
): { endpoint: string; leaseId: string; limit: number }[] {
  const counts = new Map<string, { endpoint: string; leaseId: string; limit: number }>();
  for (const { workerId, endpoint } of slots) {
    const count = counts.get(workerId) ?? { endpoint, leaseId: workerId, limit: 0 };
    count.limit += 1;
    counts.set(workerId, count);
  }
  return [...counts.values()];
}
