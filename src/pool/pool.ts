/**
 * The worker pool of one deployment: `size` workers that run the same revision
 * of a service. A worker that ends is replaced (`restart-backoff.ts`). `resize`
 * changes the number while calls run. `replace` brings in another revision
 * without a gap: its workers are ready before the old ones are told to finish.
 */
import type { EndpointManifest, ServiceManifest } from "../protocol/manifest.ts";
import { ownIdOf } from "../tasks/worker-id.ts";
import { type Slot, WorkerSlot } from "./calls/execution.ts";
import { Isolation } from "./isolation.ts";
import { JoinedWorkers } from "./joined-workers.ts";
import type { PoolOptions } from "./pool-options.ts";
import { startRevision } from "./replacement.ts";
import { type RecentEnd, RestartBackoff } from "./restart-backoff.ts";
import { DeploymentRoom } from "./room/deployment-room.ts";
import type { Room } from "./room/room.ts";
import { type Leave, type Starter, StartGate } from "./room/start-gate.ts";
import type { Worker } from "./worker.ts";
import type { Awaited, ServiceCode } from "./worker-options.ts";

/** How long a worker that is evicted has to end by itself. */
const EVICTED_WORKER_EXIT_MS = 5_000;

export type { Slot };

/** How many workers take calls of an endpoint, and how many more calls they take now. */
interface EndpointTakers {
  readonly ready: number;
  /** Those that answer. */
  readonly answering: number;
  /** Their free slots. */
  readonly free: number;
}

export class Pool implements AsyncDisposable {
  readonly #options: PoolOptions;
  readonly #restarts = new RestartBackoff(() => this.#fill());
  readonly #starts: StartGate;
  readonly #starter: Starter = {
    isUrgent: () => this.#options.isUrgent?.() ?? false,
    again: () => this.#fill(),
  };
  readonly #room: DeploymentRoom;
  #size: number;
  #service: ServiceCode | undefined;
  #workers: Worker[] = [];
  readonly #joined: JoinedWorkers;
  /** Gives suspects workers of their own. */
  readonly #isolation: Isolation;
  /** Workers of the current revision that are loading, to become one of `#workers`. */
  readonly #starting = new Set<Worker>();
  readonly #alive = new Set<Worker>();
  readonly #leaving = new Set<Promise<void>>();
  #closed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#size = options.size;
    this.#joined = new JoinedWorkers({
      ...{ onReady: options.onReady, onCapacity: options.onCapacity },
      onExit: (worker, end) => {
        this.#alive.delete(worker);
        options.onExit(worker, end);
      },
    });
    this.#isolation = new Isolation({
      workers: () => this.#serving(),
      size: () => this.#size,
      isStarting: () => this.#starting.size > 0,
      onChange: () => this.#follow(),
      onReleased: () => options.onMountSlot?.(),
    });
    this.#starts = options.starts ?? new StartGate(Number.POSITIVE_INFINITY);
    this.#room = new DeploymentRoom({
      source: options.room,
      isUrgent: () => this.#starter.isUrgent(),
      isNeeded: () => this.#options.isNeeded?.() ?? false,
      workers: () => this.#workers,
      evict: (worker) => this.#evict(worker),
      again: () => this.#fill(),
      onWaiting: () => options.onWaiting?.(),
    });
  }

  /** True when at least one worker takes calls, even if they have to wait for a slot. */
  get ready(): boolean {
    return this.#serving().some((worker) => worker.loaded);
  }

  /** The desired number of workers. */
  get size(): number {
    return this.#size;
  }

  /** The number of workers that take calls. */
  get readyCount(): number {
    return this.#serving().filter((worker) => worker.loaded).length;
  }

  /**
   * True when a worker takes calls of the endpoint, even if they have to wait for a slot; with
   * `ownId`, when the one with that id does.
   */
  serves(endpoint: Pick<EndpointManifest, "name">, ownId?: string): boolean {
    return this.#serving().some(
      (worker) => worker.loaded && worker.runs(endpoint) && isAsked(worker, ownId),
    );
  }

  /** The workers on other machines. */
  get joined(): Pick<JoinedWorkers, "fault" | "isStarting" | "readyCount" | "readyFor"> {
    return this.#joined;
  }

  /** The number of workers on this machine that are there or load. */
  get present(): number {
    return this.#workers.length + this.#starting.size;
  }

  /** The endpoints that the workers of this node do not run; undefined: they run all. */
  get awaits(): Awaited | undefined {
    return this.#service?.revision?.awaits;
  }

  /** Why a worker of what serves waits for room on the node; undefined when none does. */
  get waiting(): string | undefined {
    return this.#room.waiting;
  }

  /** Why the first worker of a roll-out waits for room on the node; undefined when it does not. */
  get rolloutWaits(): string | undefined {
    return this.#room.rolloutWaits;
  }

  /** Whether GPUs are all that a worker waits for. */
  get isShortOfGpus(): boolean {
    return this.#room.isShortOfGpus;
  }

  /** Every worker that has not ended, including those that load or finish. */
  get alive(): Iterable<Worker> {
    return this.#alive;
  }

  /** Why the workers crash in a loop; undefined when they do not. */
  get crashLoop(): string | undefined {
    return this.#restarts.crashLoop;
  }

  /** How a worker ended unexpectedly, not long ago; undefined: none did. */
  get recentEnd(): RecentEnd | undefined {
    return this.#restarts.recent;
  }

  /** How the last worker of this revision ended unexpectedly, or why it could not start. */
  get lastFault(): string | undefined {
    return this.#restarts.lastFault;
  }

  /** The workers that take calls of an endpoint: all, those that answer, and their free slots. */
  takers(endpoint: EndpointManifest): EndpointTakers {
    const takers = this.#serving().filter((worker) => worker.loaded && worker.runs(endpoint));
    const answering = takers.filter((worker) => !worker.isBlocked && !worker.isDraining);
    // One without a call may have its slots reserved, for tasks that are claimed at the moment.
    const freeIn = (worker: Worker): number =>
      Math.max(worker.freeSlots(endpoint), worker.busyness > 0 || worker.capacity.isClosed ? 0 : 1);
    return {
      ready: takers.length,
      answering: answering.length,
      free: answering.reduce((sum, worker) => sum + freeIn(worker), 0),
    };
  }

  /** The number of calls of an endpoint that hold a slot now. */
  running(endpoint: EndpointManifest): number {
    return this.#serving().reduce((sum, { capacity }) => sum + capacity.taken(endpoint), 0);
  }

  /** A worker uses this much memory now. */
  measured(worker: Worker, memoryBytes: number): void {
    this.#room.measured(worker, memoryBytes);
  }

  /** Kills a worker, which is then replaced. */
  kill(workerId: string, message: string): void {
    const worker = this.#serving().find(({ id }) => id === workerId);
    worker?.kill(message);
  }

  /** Takes in a worker on another machine; see `JoinedWorkers`. */
  async join(worker: Worker): Promise<void> {
    this.#checkOpen();
    this.#alive.add(worker);
    const added = this.#joined.add(worker);
    if (worker.revision !== this.#service?.revision?.number) {
      // Another revision took over while it was on its way.
      this.#joined.forget(worker);
      this.#retire(worker);
    }
    await added;
  }

  /** Lets all workers on other machines finish their calls, and go. */
  dismissJoined(): void {
    for (const worker of this.#joined.dismiss()) {
      this.#retire(worker);
    }
  }

  /**
   * Changes the number of workers. New ones start at once, unless earlier ones
   * crash. Surplus ones go: first those that are still loading, then the least
   * busy, which finish their calls.
   */
  resize(size: number): void {
    this.#size = size;
    this.#follow();
  }

  /** Switches to a service that is known to load, without waiting for its workers. */
  adopt(service: ServiceCode): void {
    this.#takeOver(service, []);
    this.#fill();
  }

  /**
   * Starts workers of a service, at least one to prove that the service loads.
   * When all are ready, they take over, and the old workers finish their calls,
   * however long that takes. Rejects and changes nothing when the service
   * cannot be loaded, when one of its workers ends before it takes calls, and
   * when the signal aborts before the takeover. `onManifest` is called at the
   * takeover, and refuses the service by throwing.
   */
  async replace(
    service: ServiceCode,
    onManifest: (manifest: ServiceManifest) => void,
    signal?: AbortSignal,
  ): Promise<ServiceManifest> {
    this.#checkOpen();
    return await startRevision({
      spawn: (room) => {
        this.#checkOpen();
        return this.#spawn(service, room);
      },
      size: (manifest) => this.#sizeOf(manifest),
      room: (ended) => this.#room.enterRollout(service, ended),
      freeRoom: () => this.#room.takeFree(service),
      enter: (ended) => this.#starts.enter(this.#starter.isUrgent, ended),
      onReady: (worker) => this.#options.onReady(worker),
      signal,
      takeOver: (workers, manifest) => {
        this.#checkOpen();
        onManifest(manifest);
        this.#size = this.#sizeOf(manifest);
        if (this.#size === 0 && this.#starter.isUrgent()) {
          this.#size = 1;
        }
        this.#takeOver(service, workers);
        // Where no worker is wanted, the one that proved the service goes at once.
        this.resize(this.#size);
        this.#options.onCapacity();
      },
    });
  }

  /**
   * Takes a slot on the least busy worker with a free one, and on one that may be blocked only
   * where no other has one: it is often the least busy. With `ownId`, on the worker with that id
   * alone. Undefined without a free slot.
   */
  reserve(endpoint: EndpointManifest, ownId?: string): Slot | undefined {
    let best: Worker | undefined;
    for (const worker of this.#serving()) {
      const isFree = isAsked(worker, ownId) && worker.freeSlots(endpoint) > 0;
      if (isFree && (best === undefined || isBetter(worker, best))) {
        best = worker;
      }
    }
    const { onMountSlot: onReleased } = this.#options;
    return best && new WorkerSlot(best, endpoint, { onReleased });
  }

  /**
   * Takes a whole worker for a suspect; undefined while none is free of others. Then one is made
   * so, and it is asked for again; `suspectsSettled` says that no suspect of the asker waits any more.
   * `othersWait`: other tasks may be waiting for a worker.
   */
  reserveAlone(endpoint: EndpointManifest, othersWait: boolean, asker: object): Slot | undefined {
    return this.#isolation.reserve(endpoint, othersWait || this.#starter.isUrgent(), asker);
  }

  /** Calls that nobody suspects wait for a slot. */
  crowded(): void {
    this.#isolation.crowded();
  }

  suspectsSettled(asker: object): void {
    this.#isolation.settled(asker);
  }

  /** Takes every free slot of the endpoint, up to `limit`. */
  reserveAll(endpoint: EndpointManifest, limit: number): Slot[] {
    const slots: Slot[] = [];
    for (let slot = this.reserve(endpoint); slot; slot = this.reserve(endpoint)) {
      slots.push(slot);
      if (slots.length === limit) {
        break;
      }
    }
    return slots;
  }

  /** Lets the running calls finish; resolves when all workers have ended, within `drainMs`. */
  async close(drainMs: number): Promise<void> {
    this.#closed = true;
    this.#starts.forget(this.#starter);
    this.#room.forget();
    this.#restarts.cancel();
    this.#isolation[Symbol.dispose]();
    this.#workers = [];
    this.#joined.dismiss();
    this.#starting.clear();
    for (const worker of this.#alive) {
      this.#retire(worker, drainMs);
    }
    await Promise.all(this.#leaving);
  }

  /** Kills every worker of this machine at once: the node itself is ending. */
  killAll(message: string): void {
    const own = [...this.#alive].filter(({ machine }) => machine === undefined);
    for (const worker of own) {
      worker.kill(message);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close(0);
  }

  #checkOpen(): void {
    if (this.#closed) {
      throw new Error("the server is shutting down");
    }
  }

  /** Starts a worker in this room, which is given back if that fails. */
  #spawn(service: ServiceCode, room: Room): Worker {
    const { newId, startWorker } = this.#options;
    let worker: Worker;
    try {
      const { gpus } = room;
      worker = startWorker(service, newId(), { gpus, onAnswering: () => this.#answering() });
    } catch (err) {
      room.leave();
      throw err;
    }
    this.#room.hold(worker, room);
    this.#alive.add(worker);
    void worker.exited.then((end) => {
      this.#alive.delete(worker);
      this.#options.onExit(worker, end);
    });
    return worker;
  }

  /**
   * The number of workers that are wanted now: one more than its size while suspects need one of
   * their own, or one that is there does not answer, so that the queue goes on; and one for each
   * that drains, up to its size.
   */
  get #wanted(): number {
    const isBlocked = this.#workers.some((worker) => worker.isBlocked);
    const draining = this.#workers.filter((worker) => worker.isDraining).length;
    const more = isBlocked ? 1 : this.#isolation.more;
    return this.#size + Math.max(Math.min(draining, this.#size), more);
  }

  /** Starts or ends workers, so that there are as many as wanted. */
  #follow(): void {
    if (this.#closed) {
      return;
    }
    const size = this.#wanted;
    for (const worker of this.#starting) {
      if (this.#workers.length + this.#starting.size > size) {
        this.#starting.delete(worker);
        worker.kill("it is not needed any more");
      }
    }
    const byBusyness = this.#workers
      .filter(({ capacity }) => !capacity.isClosed)
      .sort((a, b) => a.busyness - b.busyness);
    for (const worker of byBusyness.slice(0, Math.max(0, this.#workers.length - size))) {
      this.#workers.splice(this.#workers.indexOf(worker), 1);
      this.#retire(worker);
    }
    this.#fill();
  }

  /** A worker does not answer or drains, or no longer does. */
  #answering(): void {
    this.#follow();
    if (!this.#workers.some((worker) => worker.isBlocked)) {
      this.#options.onCapacity();
    }
  }

  /**
   * Ends a worker for good: its deployment gets another when it needs one. One that has calls, which
   * goes for a roll-out alone, has the time that they take. What goes for the GPUs of the
   * deployment's own roll-out is replaced by that, so that as many workers are wanted as before.
   */
  #evict(worker: Worker): void {
    this.#workers.splice(this.#workers.indexOf(worker), 1);
    this.#retire(worker, worker.capacity.idle ? EVICTED_WORKER_EXIT_MS : undefined);
    if (!this.#room.rolloutWaitsForGpus) {
      this.#size = Math.max(0, this.#size - 1);
      this.#options.onEvicted?.();
    }
  }

  #sizeOf(manifest: ServiceManifest): number {
    return this.#options.sizeOf?.(manifest) ?? this.#size;
  }

  #serving(): readonly Worker[] {
    const { workers } = this.#joined;
    return workers.length === 0 ? this.#workers : [...this.#workers, ...workers];
  }

  #retire(worker: Worker, drainMs?: number): void {
    const leaving = worker.stop(drainMs).finally(() => this.#leaving.delete(leaving));
    this.#leaving.add(leaving);
  }

  /** Switches to this service and its workers; the old workers finish their calls. */
  #takeOver(service: ServiceCode, workers: Worker[]): void {
    const old = [...this.#workers, ...this.#joined.dismiss(), ...this.#starting];
    this.#restarts.reset();
    this.#starting.clear();
    this.#service = service;
    this.#room.serve(service);
    this.#workers = workers;
    for (const worker of workers) {
      this.#room.ready(worker);
      void this.#replaceWhenGone(worker);
    }
    for (const worker of old) {
      this.#retire(worker);
    }
  }

  async #replaceWhenGone(worker: Worker): Promise<void> {
    const bornMs = Date.now();
    const { cause, message } = await worker.exited;
    const current = this.#workers.indexOf(worker);
    if (current >= 0) {
      this.#workers.splice(current, 1);
      this.#options.onReplaced?.(cause);
      this.#restarts.ended(message, { used: worker.used, livedMs: Date.now() - bornMs });
    }
  }

  /** Starts the missing workers. */
  #fill(): void {
    const service = this.#service;
    const wantsMore = (): boolean =>
      !this.#closed &&
      this.awaits?.isWhole !== true &&
      this.present < this.#wanted &&
      !this.#restarts.pausing;
    while (service !== undefined && wantsMore()) {
      const leave = this.#starts.tryEnter(this.#starter);
      if (leave === undefined) {
        return;
      }
      const room = this.#room.tryEnter();
      if (room === undefined) {
        leave();
        return;
      }
      this.#start(service, room, leave);
    }
    this.#room.forget();
  }

  #start(service: ServiceCode, room: Room, leave: Leave): void {
    let worker: Worker;
    try {
      worker = this.#spawn(service, room);
    } catch (err) {
      leave();
      this.#startFailed(err);
      return;
    }
    this.#starting.add(worker);
    this.#load(service, worker)
      .catch((err: unknown) => {
        worker.discard("it could not be started");
        // A worker that is no longer in `#starting` was told to go, so this is no failure.
        if (this.#starting.delete(worker)) {
          this.#startFailed(err);
        }
      })
      .finally(leave);
  }

  #startFailed(err: unknown): void {
    this.#restarts.failed(err instanceof Error ? err.message : String(err));
    this.#options.onReplaced?.("start_failed");
    this.#options.onRestartFailed(err);
  }

  async #load(service: ServiceCode, worker: Worker): Promise<void> {
    const manifest = await worker.load();
    this.#options.onLoaded?.(service, manifest);
    await this.#options.onReady(worker);
    if (this.#starting.delete(worker)) {
      this.#workers.push(worker);
      this.#room.ready(worker);
      void this.#replaceWhenGone(worker);
      this.#options.onCapacity();
    }
  }
}

function isAsked({ id }: Worker, ownId: string | undefined): boolean {
  return ownId === undefined || ownId === ownIdOf(id);
}

function isBetter(worker: Worker, than: Worker): boolean {
  return worker.isSlow === than.isSlow ? worker.busyness < than.busyness : than.isSlow;
}
