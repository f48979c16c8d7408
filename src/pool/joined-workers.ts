/**
 * The workers of a deployment on other machines. Somebody else starts them, so they are not
 * counted in the size of the pool, and none is replaced when it ends; they go with the revision
 * that they run.
 */
import type { EndpointManifest } from "../protocol/manifest.ts";
import { isLoading, type Worker } from "./worker.ts";
import type { WorkerEnd } from "./worker-end.ts";

/** How long calls wait for workers that were told to go, and register again for what serves now. */
const RETURN_MS = 10_000;

interface JoinedWorkersOptions {
  /** A worker is there. Attempts may be claimed for it once this resolves. */
  onReady(worker: Worker): Promise<void>;
  /** A worker has ended, and its executions with it. */
  onExit(worker: Worker, end: WorkerEnd): void;
  onCapacity(): void;
}

export class JoinedWorkers {
  readonly #options: JoinedWorkersOptions;
  /** Those that take calls. */
  workers: readonly Worker[] = [];
  /** Those whose lease is being opened: when another revision takes over, they go too. */
  readonly #entering = new Set<Worker>();
  /** Until when those that were dismissed may come back, by `performance.now`. */
  #returnUntilMs = Number.NEGATIVE_INFINITY;

  constructor(options: JoinedWorkersOptions) {
    this.#options = options;
  }

  /** The number of those that take calls. */
  get readyCount(): number {
    return this.workers.filter((worker) => worker.loaded).length;
  }

  /** The number of those that take calls of all these endpoints. */
  readyFor(endpoints: readonly EndpointManifest[]): number {
    return this.workers.filter(
      (worker) => worker.loaded && endpoints.every((each) => worker.runs(each)),
    ).length;
  }

  /**
   * True while one of them makes the service ready, or may come back to do so, so that calls of this
   * endpoint may wait.
   */
  isStarting(endpoint: EndpointManifest): boolean {
    if (performance.now() < this.#returnUntilMs) {
      return true;
    }
    return this.workers.some((worker) => isLoading(worker) && worker.runs(endpoint));
  }

  /** Why the service does not run at one of them; undefined: it does, as far as they say. */
  get fault(): string | undefined {
    return this.workers.find(({ fault }) => fault !== undefined)?.fault;
  }

  /** Takes a worker in. Rejects when it ends before its lease is open. */
  async add(worker: Worker): Promise<void> {
    void worker.exited.then((end) => {
      this.workers = this.workers.filter((each) => each !== worker);
      this.#options.onExit(worker, end);
    });
    this.#entering.add(worker);
    try {
      await this.#options.onReady(worker);
    } catch (err) {
      this.#entering.delete(worker);
      throw err;
    }
    if (this.#entering.delete(worker) && !worker.ended) {
      this.workers = [...this.workers, worker];
      this.#options.onCapacity();
    }
  }

  /** One whose lease is being opened shall take no calls. */
  forget(worker: Worker): void {
    this.#entering.delete(worker);
  }

  /** Removes and returns all of them: they take no more calls. */
  dismiss(): readonly Worker[] {
    const dismissed = [...this.workers, ...this.#entering];
    if (this.readyCount > 0) {
      this.#returnUntilMs = performance.now() + RETURN_MS;
    }
    this.workers = [];
    this.#entering.clear();
    return dismissed;
  }
}
