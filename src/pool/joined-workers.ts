/**
 * The workers of a deployment on other machines. Somebody else starts them, so they are not
 * counted in the size of the pool, and none is replaced when it ends; they go with the revision
 * that they run.
 */
import type { Worker } from "./worker.ts";

export interface JoinedWorkersOptions {
  /** A worker is there. Attempts may be claimed for it once this resolves. */
  onReady(worker: Worker): Promise<void>;
  /** A worker has ended, and its executions with it. */
  onExit(worker: Worker, reason: string): void;
  onCapacity(): void;
}

export class JoinedWorkers {
  readonly #options: JoinedWorkersOptions;
  /** Those that take calls. */
  #workers: readonly Worker[] = [];

  constructor(options: JoinedWorkersOptions) {
    this.#options = options;
  }

  get workers(): readonly Worker[] {
    return this.#workers;
  }

  /** The number of those that take calls. */
  get readyCount(): number {
    return this.#workers.filter((worker) => worker.loaded).length;
  }

  /** True while one of them makes the service ready, so that calls may wait for it. */
  get isStarting(): boolean {
    return this.#workers.some((each) => !each.loaded && !each.stopping && each.fault === undefined);
  }

  /** Why the service does not run at one of them; undefined: it does, as far as they say. */
  get fault(): string | undefined {
    return this.#workers.find(({ fault }) => fault !== undefined)?.fault;
  }

  /** Takes a worker in. Rejects when it ends before its lease is open. */
  async add(worker: Worker): Promise<void> {
    void worker.exited.then((reason) => {
      this.#workers = this.#workers.filter((each) => each !== worker);
      this.#options.onExit(worker, reason);
    });
    await this.#options.onReady(worker);
    if (!worker.ended) {
      this.#workers = [...this.#workers, worker];
      this.#options.onCapacity();
    }
  }

  /** Removes and returns all of them: they take no more calls. */
  dismiss(): readonly Worker[] {
    const dismissed = this.#workers;
    this.#workers = [];
    return dismissed;
  }
}
