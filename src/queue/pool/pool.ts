/**
 * The workers of one deployment: a fixed number of processes that all run the
 * same revision of a service. One that ends is replaced, quickly when a call
 * was the reason, and with growing pauses when that happens again and again
 * without one.
 * `replace` brings in another revision without a gap: its workers are ready
 * before the old ones are told to finish.
 */
import type { EndpointManifest, ServiceManifest } from "../../sdk/manifest.ts";
import type { Execution, ExecutionListener } from "./execution.ts";
import { type CallOptions, type WorkerOptions, WorkerProcess } from "./worker.ts";

const FIRST_RESTART_MS = 100;
const MAX_RESTART_MS = 30_000;
/** A worker that lived so long was healthy: its end begins a new series of restarts. */
const HEALTHY_AFTER_MS = 30_000;

export interface PoolOptions {
  readonly size: number;
  readonly newId: () => string;
  /** The options of one worker of this revision; called for each, as each has its own scratch folder. */
  readonly workerOptions: (service: WorkerOptions["service"]) => WorkerOptions;
  /** A worker is ready: attempts may be claimed for it once this resolves. */
  onReady(worker: WorkerProcess): Promise<void>;
  /** A worker has ended, and with it its executions. */
  onExit(worker: WorkerProcess, reason: string): void;
  /** A worker that ended could not be replaced; it is tried again. */
  onRestartFailed(err: unknown): void;
  /** Slots became free or workers ready. */
  onCapacity(): void;
}

/** The right to run one call of an endpoint in a worker. */
export class Slot {
  readonly workerId: string;
  readonly #worker: WorkerProcess;
  readonly #endpoint: EndpointManifest;
  #held = true;

  get endpoint(): string {
    return this.#endpoint.name;
  }

  constructor(worker: WorkerProcess, endpoint: EndpointManifest) {
    this.workerId = worker.id;
    this.#worker = worker;
    this.#endpoint = endpoint;
    worker.capacity.take(endpoint);
  }

  execute(
    call: Omit<CallOptions, "endpoint" | "timeoutMs">,
    listener: ExecutionListener,
  ): Execution {
    const { name, timeoutMs } = this.#endpoint;
    return this.#worker.execute({ ...call, endpoint: name, timeoutMs }, listener);
  }

  /** Gives the slot back; again is harmless. */
  release(): void {
    if (this.#held) {
      this.#held = false;
      this.#worker.release(this.#endpoint);
    }
  }
}

export class Pool implements AsyncDisposable {
  readonly #options: PoolOptions;
  #service: WorkerOptions["service"] | undefined;
  #workers: WorkerProcess[] = [];
  /** Every process that has not ended: also those that are loading, and those that finish. */
  readonly #alive = new Set<WorkerProcess>();
  readonly #leaving = new Set<Promise<void>>();
  readonly #restarts = new Set<NodeJS.Timeout>();
  #restartMs = FIRST_RESTART_MS;
  #closed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  /** True when at least one worker takes calls, be it that they have to wait for it. */
  get ready(): boolean {
    return this.#workers.some((worker) => worker.loaded);
  }

  /** Kills a worker; another takes its place. */
  kill(workerId: string, message: string): void {
    this.#workers.find(({ id }) => id === workerId)?.kill(message);
  }

  /**
   * Starts workers of a service and, when all are ready, lets those of the
   * service before finish, however long their calls may take. Rejects, with everything as it was, when the
   * service cannot be loaded. `onManifest` is called at the moment of change,
   * and refuses the service by throwing.
   */
  async replace(
    service: WorkerOptions["service"],
    onManifest: (manifest: ServiceManifest) => void,
  ): Promise<ServiceManifest> {
    if (this.#closed) {
      throw new Error("the server is shutting down");
    }
    const first = this.#spawn(service);
    const manifest = await first.load();
    const others = Array.from({ length: this.#options.size - 1 }, () => this.#spawn(service));
    const workers = [first, ...others];
    try {
      await Promise.all(others.map((worker) => worker.load()));
      await Promise.all(workers.map((worker) => this.#options.onReady(worker)));
      onManifest(manifest);
    } catch (err) {
      for (const worker of workers) {
        worker.kill("another worker of its revision could not start");
      }
      throw err;
    }
    const old = this.#workers;
    this.#service = service;
    this.#workers = workers;
    for (const worker of workers) {
      void this.#replaceWhenGone(worker, service);
    }
    for (const worker of old) {
      this.#retire(worker);
    }
    this.#options.onCapacity();
    return manifest;
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
    for (const restart of this.#restarts) {
      clearTimeout(restart);
    }
    this.#workers = [];
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

  #spawn(service: WorkerOptions["service"]): WorkerProcess {
    const { newId, workerOptions, onCapacity } = this.#options;
    const worker = new WorkerProcess(newId(), workerOptions(service), onCapacity);
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

  async #replaceWhenGone(worker: WorkerProcess, service: WorkerOptions["service"]): Promise<void> {
    const bornMs = Date.now();
    await worker.exited;
    const current = this.#workers.indexOf(worker);
    if (current < 0) {
      return;
    }
    this.#workers.splice(current, 1);
    // An end during or after a call is the call's doing, such as a timeout, and no reason to wait.
    if (worker.used || Date.now() - bornMs > HEALTHY_AFTER_MS) {
      this.#restartMs = FIRST_RESTART_MS;
    }
    this.#restartLater(service);
  }

  #restartLater(service: WorkerOptions["service"]): void {
    if (this.#closed) {
      return;
    }
    const restart = setTimeout(() => {
      this.#restarts.delete(restart);
      void this.#restart(service);
    }, this.#restartMs);
    this.#restarts.add(restart);
    this.#restartMs = Math.min(this.#restartMs * 2, MAX_RESTART_MS);
  }

  async #restart(service: WorkerOptions["service"]): Promise<void> {
    if (this.#closed || service !== this.#service) {
      return;
    }
    let worker: WorkerProcess | undefined;
    try {
      worker = this.#spawn(service);
      await worker.load();
      await this.#options.onReady(worker);
    } catch (err) {
      worker?.kill("it could not be started");
      this.#options.onRestartFailed(err);
      this.#restartLater(service);
      return;
    }
    if (this.#closed || service !== this.#service) {
      this.#retire(worker, 0);
      return;
    }
    this.#workers.push(worker);
    void this.#replaceWhenGone(worker, service);
    this.#options.onCapacity();
  }
}
