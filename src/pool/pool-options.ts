/** What a pool is made with. */
import type { ReplacementCause } from "../metrics/metrics.ts";
import type { ServiceManifest } from "../protocol/manifest.ts";
import type { WorkerGpu } from "./gpus/gpus.ts";
import type { RoomSource } from "./room/deployment-room.ts";
import type { StartGate } from "./room/start-gate.ts";
import type { Worker } from "./worker.ts";
import type { WorkerEnd } from "./worker-end.ts";
import type { ServiceCode } from "./worker-options.ts";

/** What a pool says of a worker that it starts. */
interface WorkerStart {
  /** What it has of the machine's. */
  readonly gpus: readonly WorkerGpu[];
  /** Call it when `isBlocked` or `isDraining` has changed. */
  onAnswering(): void;
}

export interface PoolOptions {
  /** The initial number of workers; 0 is possible. */
  readonly size: number;
  /** The number of workers of a service that comes in. Default: as many as there are. */
  readonly sizeOf?: ((manifest: ServiceManifest) => number) | undefined;
  /** Limits how many workers of the node start at a time. Default: no limit. */
  readonly starts?: StartGate | undefined;
  /** The node's budget, in which each worker needs room. Default: no limits. */
  readonly room?: RoomSource | undefined;
  /** True while a caller waits for a worker. Default: never. */
  readonly isUrgent?: () => boolean;
  /** True while calls or tasks wait for a worker. Default: never. */
  readonly isNeeded?: () => boolean;
  readonly newId: () => string;
  /** Starts a worker of the service. */
  readonly startWorker: (service: ServiceCode, workerId: string, start: WorkerStart) => Worker;
  /** A worker of what serves has loaded, outside a roll-out. Refuses it by throwing. */
  onLoaded?(service: ServiceCode, manifest: ServiceManifest): void;
  /** A worker is ready. Attempts may be claimed for it once this resolves. */
  onReady(worker: Worker): Promise<void>;
  /** A worker has ended, and its executions with it. */
  onExit(worker: Worker, end: WorkerEnd): void;
  /** A worker could not be started; another try follows. */
  onRestartFailed(err: unknown): void;
  /** A worker ended unexpectedly or could not start, and will be replaced. */
  onReplaced?(cause: ReplacementCause): void;
  /** A slot of a mounted server was given back, which calls and tasks share. */
  readonly onMountSlot?: () => void;
  /** Slots became free or workers ready. */
  onCapacity(): void;
  /** `waiting` may have changed. */
  onWaiting?(): void;
  /** An idle worker was ended, and `size` lowered, because others needed its room. */
  onEvicted?(): void;
}
