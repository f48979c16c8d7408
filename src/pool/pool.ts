/**
 * The workers of one deployment: as many processes as `size` says, which all
 * run the same revision of a service. One that ends is replaced (`restarts.ts`).
 * `resize` lets the number grow and shrink while calls run; `replace` brings in
 * another revision without a gap: its workers are ready before the old ones
 * are told to finish.
 */

import type { WorkerEnd } from "../metrics/deployment.ts";
import type { EndpointManifest, ServiceManifest } from "../protocol/manifest.ts";
import type { ServiceCode, WorkerOptions } from "./options.ts";
import { startRevision } from "./replacement.ts";
import { RestartBackoff } from "./restart-backoff.ts";
import { Slot } from "./slot.ts";
import { type Leave, type Starter, StartGate } from "./start-gate.ts";
import { WorkerProcess } from "./worker.ts";

export interface PoolOptions {
  /** Workers at first; 0 is possible. */
  readonly size: number;
  /** Where all workers of the node wait for room to start. Default: as many start as are wanted. */
  readonly starts?: StartGate | undefined;
  /** Somebody waits for a worker. Default: nobody does. */
  readonly isUrgent?: () => boolean;
  readonly newId: () => string;
  /** The options of one worker of this revision; called for each, as each has its own scratch folder. */
  readonly workerOptions: (service: ServiceCode, workerId: string) => WorkerOptions;
  /** A worker is ready: attempts may be claimed for it once this resolves. */
  onReady(worker: WorkerProcess): Promise<void>;
  /** A worker has ended, and with it its executions. */
  onExit(worker: WorkerProcess, reason: string): void;
  /** A worker that ended could not be replaced; it is tried again. */
  onRestartFailed(err: unknown): void;
  /** A worker has to be replaced that nobody had told to end, or that could not start. */
  onReplaced?(cause: WorkerEnd): void;
  /** Slots became free or workers ready. */
  onCapacity(): void;
}

export type { Slot };

export class Pool implements AsyncDisposable {
  readonly #options: PoolOptions;
  readonly #restarts = new RestartBackoff(() => this.#fill());
  readonly #starts: StartGate;
  readonly #starter: Starter = {
    isUrgent: () => this.#options.isUrgent?.() ?? false,
    again: () => this.#fill(),
  };
  #size: number;
  #service: ServiceCode | undefined;
  #workers: WorkerProcess[] = [];
  /** Workers of the current revision that are loading, to become one of `#workers`. */
  readonly #starting = new Set<WorkerProcess>();
  readonly #alive = new Set<WorkerProcess>();
  readonly #leaving = new Set<Promise<void>>();
  #closed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#size = options.size;
    this.#starts = options.starts ?? new StartGate(Number.POSITIVE_INFINITY);
  }

  /** True when at least one worker takes calls, be it that they have to wait for it. */
  get ready(): boolean {
    return this.#workers.some((worker) => worker.loaded);
  }

  /** Workers that there should be. */
  get size(): number {
    return this.#size;
  }

  /** Workers that take calls. */
  get readyCount(): number {
    return this.#workers.filter((worker) => worker.loaded).length;
  }

  /** Every process that has not ended: also those that are loading, and those that finish. */
  get alive(): Iterable<WorkerProcess> {
    return this.#alive;
  }

  /** Why the workers end again and again; undefined when they do not. */
  get crashLoop(): string | undefined {
    return this.#restarts.crashLoop;
  }

  /** How the last worker ended that nobody had told to, of this revision. */
  get lastFault(): string | undefined {
    return this.#restarts.lastFault;
  }

  /** Calls of an endpoint that run now. */
  running(endpoint: EndpointManifest): number {
    return this.#workers.reduce((sum, { capacity }) => sum + capacity.taken(endpoint), 0);
  }

  /** Kills a worker; another takes its place. */
  kill(workerId: string, message: string): void {
    this.#workers.find(({ id }) => id === workerId)?.kill(message);
  }

  /**
   * Changes how many workers there should be. New ones are started at once,
   * unless those before them crash; of too many, those that are still loading
   * go first, then the least busy, which finish what they run.
   */
  resize(size: number): void {
    this.#size = size;
    for (const worker of this.#starting) {
      if (this.#workers.length + this.#starting.size > size) {
        this.#starting.delete(worker);
        worker.kill("it is not needed any more");
      }
    }
    const byBusyness = this.#workers.toSorted((a, b) => a.busyness - b.busyness);
    for (const worker of byBusyness.slice(0, Math.max(0, this.#workers.length - size))) {
      this.#workers.splice(this.#workers.indexOf(worker), 1);
      this.#retire(worker);
    }
    this.#fill();
  }

  /** Takes on a service that is known to load, without starting a worker before one is needed. */
  adopt(service: ServiceCode): void {
    this.#takeOver(service, []);
    this.#fill();
  }

  /**
   * Starts workers of a service and, when all are ready, lets those of the
   * service before finish, however long their calls may take. There is one at
   * least, to prove that the service loads. Rejects, with everything as it
   * was, when the service cannot be loaded, when one of its workers ends before
   * it takes calls, and when the signal aborts before it has taken over.
   * `onManifest` is called at the moment of change, and refuses the service by
   * throwing.
   */
  async replace(
    service: ServiceCode,
    onManifest: (manifest: ServiceManifest) => void,
    signal?: AbortSignal,
  ): Promise<ServiceManifest> {
    const open = (): void => {
      if (this.#closed) {
        throw new Error("the server is shutting down");
      }
    };
    open();
    return await startRevision({
      spawn: () => {
        open();
        return this.#spawn(service);
      },
      size: () => this.#size,
      enter: (ended) => this.#starts.enter(this.#starter.isUrgent, ended),
      onReady: (worker) => this.#options.onReady(worker),
      signal,
      takeOver: (workers, manifest) => {
        open();
        onManifest(manifest);
        this.#size = Math.max(this.#size, 1);
        this.#takeOver(service, workers);
        this.resize(this.#size);
        this.#options.onCapacity();
      },
    });
  }

  /** A slot on the least busy worker that has one free; undefined when none has. */
  reserve(endpoint: EndpointManifest): Slot | undefined {
    let best: WorkerProcess | undefined;
    for (const worker of this.#workers) {
      if (
        worker.freeSlots(endpoint) > 0 &&
        (best === undefined || worker.busyness < best.busyness)
      ) {
        best = worker;
      }
    }
    return best && new Slot(best, endpoint);
  }

  /** Every slot of the endpoint that is free now, up to `limit`. */
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

  /** Lets the calls under way finish, and has ended the workers within `drainMs`. */
  async close(drainMs: number): Promise<void> {
    this.#closed = true;
    this.#starts.forget(this.#starter);
    this.#restarts.cancel();
    this.#workers = [];
    this.#starting.clear();
    for (const worker of this.#alive) {
      this.#retire(worker, drainMs);
    }
    await Promise.all(this.#leaving);
  }

  /** Ends every process at once, without a chance to finish: the node itself is ending. */
  killAll(message: string): void {
    for (const worker of this.#alive) {
      worker.kill(message);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close(0);
  }

  #spawn(service: ServiceCode): WorkerProcess {
    const { newId, workerOptions, onCapacity } = this.#options;
    const workerId = newId();
    const worker = new WorkerProcess(workerId, workerOptions(service, workerId), onCapacity);
    this.#alive.add(worker);
    void worker.exited.then((reason) => {
      this.#alive.delete(worker);
      this.#options.onExit(worker, reason);
    });
    return worker;
  }

  #retire(worker: WorkerProcess, drainMs?: number): void {
    const leaving = worker.stop(drainMs).finally(() => this.#leaving.delete(leaving));
    this.#leaving.add(leaving);
  }

  /** From now on workers are of this service; those of the one before finish. */
  #takeOver(service: ServiceCode, workers: WorkerProcess[]): void {
    const old = [...this.#workers, ...this.#starting];
    this.#restarts.reset();
    this.#starting.clear();
    this.#service = service;
    this.#workers = workers;
    for (const worker of workers) {
      void this.#replaceWhenGone(worker);
    }
    for (const worker of old) {
      this.#retire(worker);
    }
  }

  async #replaceWhenGone(worker: WorkerProcess): Promise<void> {
    const bornMs = Date.now();
    const reason = await worker.exited;
    const current = this.#workers.indexOf(worker);
    if (current >= 0) {
      this.#workers.splice(current, 1);
      this.#options.onReplaced?.(worker.causeOf(reason));
      this.#restarts.ended(reason, { used: worker.used, livedMs: Date.now() - bornMs });
    }
  }

  /** Starts what is missing. */
  #fill(): void {
    const service = this.#service;
    if (this.#closed || service === undefined || this.#restarts.pausing) {
      return;
    }
    while (this.#workers.length + this.#starting.size < this.#size && !this.#restarts.pausing) {
      const leave = this.#starts.tryEnter(this.#starter);
      if (leave === undefined) {
        return;
      }
      this.#start(service, leave);
    }
  }

  #start(service: ServiceCode, leave: Leave): void {
    let worker: WorkerProcess;
    try {
      worker = this.#spawn(service);
    } catch (err) {
      leave();
      this.#startFailed(err);
      return;
    }
    this.#starting.add(worker);
    this.#load(worker)
      .catch((err: unknown) => {
        worker.discard("it could not be started");
        // One that is not wanted any more has been told to go.
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

  async #load(worker: WorkerProcess): Promise<void> {
    await worker.load();
    await this.#options.onReady(worker);
    if (this.#starting.delete(worker)) {
      this.#workers.push(worker);
      void this.#replaceWhenGone(worker);
      this.#options.onCapacity();
    }
  }
}
