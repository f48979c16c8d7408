/** What a worker on another machine is made with. */
import type { ServiceManifest } from "../../protocol/manifest.ts";
import type { CountsReceiver } from "../options.ts";
import type { WorkerLease, WorkerMachine } from "../worker.ts";
import type { HeldCall } from "./messages.ts";
import type { RemoteTransfersOptions } from "./transfers.ts";

/**
 * How much longer than its grace period an aborted call may take to end: the worker ends it by
 * force, and its answer has to arrive.
 */
export const ABORT_ANSWER_MS = 5_000;

export interface RemoteWorkerOptions extends RemoteTransfersOptions {
  readonly id: string;
  readonly machine: WorkerMachine;
  readonly revision: number | undefined;
  readonly manifest: ServiceManifest;
  readonly lease: WorkerLease;
  /** Time between an abort and the end of a call by force, at the worker. */
  readonly graceMs: number;
  /** After this silence it is lost. */
  readonly silenceMs: number;
  /** The endpoints whose calls are for its machine, by name. Default: all. */
  readonly endpoints?: ReadonlySet<string> | undefined;
  /** Calls that it runs already, which another node began. */
  readonly held?: readonly HeldCall[];
  /** Slots became free. */
  onCapacity(): void;
  /** Returns the receiver of the service's metrics. Default: none. */
  readonly countsOf?: ((manifest: ServiceManifest) => CountsReceiver) | undefined;
}
