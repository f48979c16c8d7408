/**
 * A worker as the node sees it: the port of the pool and of all above it. It loads one
 * service and executes its calls. Where it runs, and by which protocol it is spoken
 * to, is known to who starts it only; `LocalWorker` is a process on this machine.
 */
import type { EndpointManifest, ServiceManifest } from "../protocol/manifest.ts";
import type { MachineLoad } from "../storage/hosting/nodes.ts";
import type { Capacity, ExecuteOptions, Execution, ExecutionListener } from "./calls/execution.ts";
import type { MountAgent } from "./calls/mount-agents.ts";
import type { GpuTime } from "./gpus/gpu-time.ts";
import type { WorkerUsage } from "./usage.ts";
import type { WorkerEnd } from "./worker-end.ts";

/** The other machine that a worker runs on. */
export interface WorkerMachine {
  readonly hostname: string;
  /** Its operating system and processor, such as `linux-x64`. */
  readonly platform: string;
  /** The version of its program. */
  readonly version: string;
  readonly labels: { readonly [name: string]: string };
  /** The id that its token says, if a launcher has started it. */
  readonly launched?: string | undefined;
  /** Undefined where it does not tell. */
  readonly load?: MachineLoad | undefined;
  /** How long nothing has been heard of the worker on it. Undefined: it is connected. */
  readonly silentMs?: number | undefined;
  /** It takes no new calls. */
  readonly isDrained?: boolean;
}

/**
 * Whether a worker makes its service ready, so that it takes calls soon. One whose machine is drained
 * does not: it is not `loaded` either, and stays so until its machine is taken back.
 */
export function isLoading({ loaded, stopping, ended, isDraining, fault }: Worker): boolean {
  return !loaded && !stopping && !ended && !isDraining && fault === undefined;
}

/** How the lease of a worker is held; a process on this machine says nothing. */
export interface WorkerLease {
  /** Digest of the secret with which another node may adopt it. */
  readonly session?: string;
  /** True when this node has adopted it, so that it is open. */
  readonly isAdopted?: boolean;
  /** How long it lasts without renewal. Default: as those of processes on this machine. */
  readonly ttlMs?: number;
}

export interface Worker {
  /** The id of the worker and of the lease of its attempts. */
  readonly id: string;
  /** The revision of its service; undefined where services have none. */
  readonly revision: number | undefined;
  readonly capacity: Capacity;
  /** Undefined where it has no GPU. */
  readonly gpuTime?: GpuTime | undefined;
  /** Undefined for a process on this machine. */
  readonly machine: WorkerMachine | undefined;
  readonly lease: WorkerLease;
  /** The number of calls under way. */
  readonly busyness: number;
  /** False while it loads or stops, and after it has ended. */
  readonly loaded: boolean;
  /** Why it does not load the service, where it stays and tries again; for those who deploy it. */
  readonly fault: string | undefined;
  /** True after its first call, which shows that its service loads and starts. */
  readonly used: boolean;
  /** True when it was told to finish. */
  readonly stopping: boolean;
  /**
   * True while it does not answer, because a function blocks its event loop or its connection is
   * broken, and while its service says that it is not ready.
   */
  readonly isBlocked: boolean;
  /** True while it may be blocked: a call would begin sooner in another worker. */
  readonly isSlow: boolean;
  /**
   * True while it takes no more calls, because one in it went on after its abort, beside others, or
   * because its machine is drained.
   */
  readonly isDraining: boolean;
  /** True as soon as its end is known or decided. */
  readonly ended: boolean;
  /** Resolves with the reason when it has ended, and its calls with it. */
  readonly exited: Promise<WorkerEnd>;
  /** True when it goes on without this node, and keeps its lease. */
  readonly isParted: boolean;
  /** Resolves when it has ended and all of its output was read. */
  readonly outputEnded: Promise<void>;
  /** For the log. */
  readonly pid: number | undefined;
  /** What it uses now; after its end, the processor time as last measured. */
  usage(): WorkerUsage;
  /** Loads the service. Rejects with one message that says what is wrong. */
  load(): Promise<ServiceManifest>;
  /** False for an endpoint whose calls are not for its machine; also while it loads. */
  runs(endpoint: Pick<EndpointManifest, "name">): boolean;
  /** The number of calls of the endpoint that it can take now; 0 while blocked, draining or not loaded. */
  freeSlots(endpoint: EndpointManifest): number;
  /** Begins a call; the listener's `onEnd` is called exactly once. */
  execute(call: ExecuteOptions, listener: ExecutionListener): Execution;
  /** Connections to the mounted server at this path; undefined where the worker has none. */
  agentOf(mount: string): MountAgent | undefined;
  /** Ends the WebSockets of mounted servers, and each of their connections with its answer. */
  retire(): void;
  /** Releases a slot that was taken from `capacity`. */
  release(endpoint: EndpointManifest): void;
  /**
   * Takes no more calls, lets the running ones finish, and ends the worker. With
   * `withinMs`, calls are aborted a grace period before that time, and the worker is
   * killed at that time; without, their own timeouts are the limit. A worker on another
   * machine outlives a node that ends within a time: it goes on with its tasks, which
   * have no end here then.
   */
  stop(withinMs?: number): Promise<void>;
  kill(reason: string, cause?: "gpu_memory"): void;
  /** Kills a worker that cannot be used, unless it is about to exit by itself. */
  discard(reason: string): void;
}
