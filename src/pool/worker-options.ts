/** The options of a worker and of a call in it. */
import type { ServiceManifest } from "../protocol/manifest.ts";
import type { ServiceEntry, WorkerMessage } from "../protocol/messages.ts";
import type { NetworkSettings } from "../storage/deployment-settings.ts";
import type { FileTransferOptions } from "./calls/transfers.ts";
import type { WorkerGpu } from "./gpus/gpus.ts";
import type { GpuNeed } from "./gpus/ledger.ts";
import type { Launch, WorkerEgress, WorkerRights } from "./launch/launch.ts";
import type { WorkerModel } from "./launch/models.ts";
import type { Interpreter } from "./launch/python.ts";
import type { WorkerCache, WorkerLimits } from "./limits.ts";
import type { OutputStream } from "./process.ts";
import type { WorkerImage } from "./sandbox/image.ts";

/** The service that a worker loads. */
export interface ServiceCode {
  /** The real path of the service's source file, or of its module in an artifact. */
  readonly servicePath: string;
  /**
   * The service's code as one ES module, or a reader of it: sleeping services need no memory.
   * A Python service is imported by its workers.
   */
  readonly code: string | (() => Promise<string>) | PythonCode;
  /** Its packages are in its own folder, as in an artifact; it reads none from parent folders. */
  readonly selfContained?: boolean;
  /** The revision of a deployment; undefined under `tessera serve`, where services have none. */
  readonly revision?: {
    /** From 1. */
    readonly number: number;
    /** The environment variables of its workers, with the secrets. */
    readonly env: { readonly [name: string]: string };
    /** The names of the secrets among them. Default: none. */
    readonly secrets?: readonly string[];
    readonly limits: WorkerLimits;
    /** What its workers keep between them and beyond their ends. Default: nothing. */
    readonly cache?: WorkerCache;
    /** Its models, on this machine. Default: none. */
    readonly models?: readonly WorkerModel[];
    /** How long its workers may take to load it. Default: as the operator says. */
    readonly readyTimeoutMs?: number;
    /** What each of its workers takes of the GPUs of its machine. Default: nothing. */
    readonly gpus?: GpuNeed;
    /** The folder with the files of its system packages. Default: none. */
    readonly layer?: string;
    /** The image that is the root of its workers. Default: none. */
    readonly image?: WorkerImage;
    /** Where its workers may connect to. */
    readonly network: NetworkSettings;
    /**
     * It serves for a newer revision that has not started here. Tasks that it
     * cannot run may be meant for the newer one, so they wait. Default: false.
     */
    readonly standsIn?: boolean;
    /** What this node may not run. Default: nothing. */
    readonly awaits?: Awaited;
    /** The platform of its native code, as its artifact says; undefined: it has none. */
    readonly platform?: string;
  };
}

/** The endpoints that the workers of a node may not run, so that workers have to join for them. */
export interface Awaited {
  /** By name, with what each waits for, for people. */
  readonly endpoints: ReadonlyMap<string, string>;
  /** True when it is all of them, so that the node starts no worker. */
  readonly isWhole: boolean;
}

/** A service in Python, and the interpreter that has its packages. */
export interface PythonCode extends ServiceEntry, Interpreter {
  /** Called before a worker loads it. Rejects when its files are damaged. Default: nothing is verified. */
  verify?(): Promise<void>;
}

export interface WorkerOptions extends Omit<FileTransferOptions, "scratchFolder"> {
  readonly service: ServiceCode;
  /** The resource limits of a worker of a deployment. Default: no limits. */
  readonly limits?: WorkerLimits | undefined;
  readonly rights: WorkerRights;
  /** What it has of the GPUs of the machine. Default: nothing. */
  readonly gpus?: readonly WorkerGpu[] | undefined;
  /** The folder with the files of its system packages. Default: none. */
  readonly layer?: string | undefined;
  /** The image that is its root. Default: none. */
  readonly image?: WorkerImage | undefined;
  /** How it is started. Default: in Node alone. */
  readonly launch?: Launch | undefined;
  /** Its egress proxy. Default: none. */
  readonly egress?: WorkerEgress | undefined;
  /** The worker's own folder. */
  readonly scratchFolder: string;
  /** The folder that it shares with the other workers of its deployment. Default: none. */
  readonly cache?: WorkerCache | undefined;
  /** The models of the service. Default: none. */
  readonly models?: readonly WorkerModel[] | undefined;
  /** Environment variables in addition to those of every worker. */
  readonly env: { readonly [name: string]: string };
  /** Time between an abort and the kill, or the drain. */
  readonly graceMs: number;
  /** Limit of the time to load the service. */
  readonly readyTimeoutMs: number;
  /** The process was started with this process id. */
  onSpawn(pid: number): void;
  /** A line that the service wrote, or that the node wrote about its output. */
  onOutput(line: string, stream: OutputStream): void;
  /** The node failed to handle a message: log it. The worker is killed. */
  onFault(err: unknown): void;
  /** Returns the receiver of the service's metrics when the worker is ready. Default: none. */
  readonly countsOf?: ((manifest: ServiceManifest) => CountsReceiver) | undefined;
}

/** Receives the custom metrics of the service in one worker. */
export interface CountsReceiver {
  /** Returns what is wrong with a forged message; undefined for a valid one. */
  take(message: Extract<WorkerMessage, { readonly type: "metrics" }>): string | undefined;
  /** The worker has ended. */
  end(): void;
}
