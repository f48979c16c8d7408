/** What the workers of one deployment are run with. */
import type { WorkerEnd } from "../metrics/deployment.ts";
import type { ServiceCode, WorkerOptions } from "./options.ts";
import type { StartGate } from "./start-gate.ts";
import type { WorkerProcess } from "./worker.ts";

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
