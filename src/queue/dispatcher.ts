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
import { shareSlots, TaskBatchWait } from "./batches/tasks.ts";
import { DueTasks } from "./claims/due-tasks.ts";
import { ClaimRecovery } from "./claims/recovery.ts";
import { Suspects } from "./claims/suspects.ts";

/** Tasks of one endpoint claimed at once. */
const MAX_CLAIMED_TASKS = 200;

interface DispatcherOptions {
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
  /** A batch of tasks goes to a worker; the oldest has waited this long. */
  onBatch?(endpoint: string, size: number, waitSeconds: number): void;
}

type Refusal = (claimed: ClaimedTask) => TaskFailure | undefined;

export class Dispatcher implements AsyncDisposable {
  readonly #options: DispatcherOptions;
  readonly #backlog = new Set<string>();
  /** Endpoints hinted at since the claim under way was sent. */
  readonly #hinted = new Set<string>();
  /** Of the endpoints whose tasks run in batches. */
  readonly #waits = new Map<string, TaskBatchWait>();
  readonly #recovery: ClaimRecovery;
  readonly #due: DueTasks;
  readonly #suspects: Suspects;
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
    this.#suspects = new Suspects({
      ...options,
      recovery: this.#recovery,
      othersWait: () => this.#backlog.size > 0,
      find: (endpoint) => this.#endpoints.get(endpoint),
      start: (claimed, slot) => this.#startAlone(claimed, slot),
    });
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
    this.#endWaits();
    for (const { name, batch } of tasks) {
      if (batch) {
        this.#waits.set(name, new TaskBatchWait(batch, () => this.wake()));
      }
    }
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
      !this.#stopped &&
      task.runAtMs <= task.createdAtMs &&
      endpoint.batch === undefined &&
      !this.#backlog.has(endpoint.name);
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
        this.#recovery.doubt([slot.workerId]);
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
      this.#waits.get(endpoint)?.came(ready.filter((task) => task.endpoint === endpoint).length);
    }
    this.#hint(endpoints);
  }

  /** From now on, `announce` tells other nodes which endpoints have tasks to claim. */
  announceTo(announce: (endpoint: string) => void): void {
    this.#announce = announce;
  }

  /** Tasks of any endpoint may be waiting. */
  hintAll(): void {
    for (const wait of this.#waits.values()) {
      wait.hurry();
    }
    this.#hint(this.#endpoints.keys());
  }

  /** A task of this endpoint went back to the queue, to be claimed from this time on. */
  requeued(endpoint: string, runAtMs: number, isSuspect = false): void {
    if (runAtMs > this.#options.now()) {
      this.#due.expect(runAtMs);
    } else if (isSuspect) {
      this.#suspects.came(endpoint);
      this.#options.onFull?.();
    } else {
      this.#announce?.(endpoint);
      this.hint(endpoint);
    }
  }

  /** Tasks of this endpoint may be waiting. */
  hint(endpoint: string): void {
    this.#waits.get(endpoint)?.came(1);
    this.#hint([endpoint]);
  }

  /** Tells how many suspects of this endpoint are waiting. */
  suspects(endpoint: string, count: number): void {
    this.#suspects.hint(endpoint, count);
    this.#options.onFull?.();
  }

  /** A slot became free. */
  slotFree(): void {
    this.wake();
  }

  /** Claims waiting tasks for the slots that are free now. */
  wake(): void {
    this.#suspects.wake();
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
    this.#endWaits();
    await this.#claiming;
    await this.#suspects[Symbol.asyncDispose]();
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
    const claims = [...slots.values()].flatMap((free) => this.#countByWorker(free));
    const { deploymentId, storage, pool, now, onStorage, onFull } = this.#options;
    const gathering = [...this.#backlog].filter((name) => this.#waits.get(name)?.due === false);
    if (slots.size < this.#backlog.size - gathering.length) {
      pool.crowded();
      onFull?.();
    }
    if (claims.length === 0) {
      return;
    }
    this.#hinted.clear();
    const claiming = this.#recovery.callBegins();
    try {
      const claimed = await storage.claimTasks({ deploymentId, nowMs: now(), claims });
      this.#startAll(claimed, slots);
      onStorage(true);
      for (const endpoint of slots.keys()) {
        const wanted = claims.filter((claim) => claim.endpoint === endpoint);
        const found = claimed.filter(({ task }) => task.endpoint === endpoint).length;
        if (found === wanted.reduce((sum, { limit }) => sum + limit, 0)) {
          this.#again = true;
        } else if (!this.#hinted.has(endpoint)) {
          this.#backlog.delete(endpoint);
          this.#waits.get(endpoint)?.emptied();
        }
      }
    } catch (err) {
      this.#recovery.doubt(claims.map(({ leaseId }) => leaseId));
      onStorage(false);
      throw err;
    } finally {
      claiming.end();
      for (const slot of [...slots.values()].flat()) {
        slot.release();
      }
    }
  }

  #startAll(claimed: readonly ClaimedTask[], slots: ReadonlyMap<string, Slot[]>): void {
    const batched = new Map<string, ClaimedTask[]>();
    for (const one of claimed) {
      const { endpoint } = one.task;
      if (this.#refused(one)) {
        continue;
      }
      if (this.#waits.has(endpoint)) {
        const key = `${endpoint} ${one.leaseId}`;
        batched.set(key, [...(batched.get(key) ?? []), one]);
      } else {
        this.#start(one, slots.get(endpoint) ?? []);
      }
    }
    for (const tasks of batched.values()) {
      const free = slots.get(tasks[0]?.task.endpoint ?? "") ?? [];
      this.#startBatches(tasks, free);
    }
  }

  #refused(claimed: ClaimedTask): boolean {
    const refusal = this.#refusal(claimed);
    if (refusal === undefined) {
      return false;
    }
    this.#options.attempts.refuse(claimed, refusal);
    // Its slot was not used, and more may be waiting.
    this.#hinted.add(claimed.task.endpoint);
    this.#again = true;
    return true;
  }

  #start(claimed: ClaimedTask, free: Slot[]): void {
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

  /** Starts a suspect in a worker of its own. */
  #startAlone(claimed: ClaimedTask, slot: Slot): void {
    const endpoint = this.#endpoints.get(claimed.task.endpoint);
    if (this.#refused(claimed)) {
      slot.release();
    } else if (endpoint) {
      this.#options.attempts.start(claimed, endpoint, slot);
    } else {
      slot.release();
      this.#options.attempts.giveBack(attemptOf(claimed));
    }
  }

  /** Starts tasks of one endpoint that were claimed for one worker. */
  #startBatches(tasks: readonly ClaimedTask[], free: Slot[]): void {
    const { attempts, now, onBatch } = this.#options;
    const [first] = tasks;
    const endpoint = this.#endpoints.get(first?.task.endpoint ?? "");
    const wait = this.#waits.get(endpoint?.name ?? "");
    const own = free.filter(({ workerId }) => workerId === first?.leaseId);
    for (const slot of own) {
      free.splice(free.indexOf(slot), 1);
    }
    const { shared, left } =
      endpoint && wait ? shareSlots(tasks, own, wait.batch) : { shared: [], left: tasks };
    free.push(...own);
    for (const batch of shared) {
      wait?.formed(batch.length);
      const oldestMs = Math.min(...batch.map(({ claimed }) => claimed.task.runAtMs));
      onBatch?.(endpoint?.name ?? "", batch.length, Math.max(0, now() - oldestMs) / 1_000);
      for (const { claimed, slot } of batch) {
        attempts.start(claimed, endpoint as EndpointManifest, slot);
      }
    }
    // Their key is another one: they run when a slot is free.
    for (const claimed of left) {
      attempts.giveBack(attemptOf(claimed));
    }
  }

  /** The free slots of the endpoints that may have tasks waiting. */
  #reserve(): Map<string, Slot[]> {
    const slots = new Map<string, Slot[]>();
    for (const name of this.#backlog) {
      const endpoint = this.#endpoints.get(name);
      const wait = this.#waits.get(name);
      const most = Math.ceil(MAX_CLAIMED_TASKS / (wait?.batch.maxSize ?? 1));
      const due = endpoint !== undefined && wait?.due !== false;
      const free = due ? this.#options.pool.reserveAll(endpoint, most) : [];
      if (free.length > 0) {
        slots.set(name, free);
      }
    }
    return slots;
  }

  /** How many tasks may be claimed for each worker. */
  #countByWorker(slots: readonly Slot[]): { endpoint: string; leaseId: string; limit: number }[] {
    const counts = new Map<string, { endpoint: string; leaseId: string; limit: number }>();
    for (const { workerId, endpoint } of slots) {
      const count = counts.get(workerId) ?? { endpoint, leaseId: workerId, limit: 0 };
      count.limit += this.#waits.get(endpoint)?.batch.maxSize ?? 1;
      counts.set(workerId, count);
    }
    return [...counts.values()];
  }

  #endWaits(): void {
    for (const wait of this.#waits.values()) {
      wait[Symbol.dispose]();
    }
    this.#waits.clear();
  }
}
