/** What a worker is started with, and what a call in it. */
import type { EndpointManifest, ServiceManifest } from "../protocol/manifest.ts";
import type { Call, Payload, WorkerMessage } from "../protocol/messages.ts";
import type { WorkerLimits } from "./limits.ts";
import type { OutputStream } from "./process.ts";
import type { FileTransferOptions } from "./transfers.ts";

/** What a worker loads. */
export interface ServiceCode {
  /** Real path of the service's source file, or of its module in an artifact. */
  readonly servicePath: string;
  /** One ES module. */
  readonly code: string;
  /** Its packages are in its folder, as in an artifact; it reads none of those around it. */
  readonly selfContained?: boolean;
  /** Which revision of a hosted deployment it is; a service that is developed has none. */
  readonly revision?: {
    /** From 1. */
    readonly number: number;
    /** The environment of its workers, secrets among it. */
    readonly env: { readonly [name: string]: string };
    readonly limits: WorkerLimits;
    /**
     * It serves in the place of a newer one, which has not started here: tasks
     * that it cannot run may be meant for that one, and wait. Default: false.
     */
    readonly standsIn?: boolean;
    /** The platform that it has native code for, as its artifact says; absent: it has none. */
    readonly platform?: string;
  };
}

export interface WorkerOptions extends Omit<FileTransferOptions, "scratchFolder"> {
  readonly service: ServiceCode;
  /** What it may use, when its service is hosted for others. Default: whatever there is. */
  readonly limits?: WorkerLimits | undefined;
  /** Flags of Node's permission model. */
  readonly permissions: readonly string[];
  /** A folder of its own that it may write. */
  readonly scratchFolder: string;
  /** Its environment besides what every worker has. */
  readonly env: { readonly [name: string]: string };
  /** Between an abort and the kill. */
  readonly graceMs: number;
  /** How long loading the service may take. */
  readonly readyTimeoutMs: number;
  /** The process exists, with this number. */
  onSpawn(pid: number): void;
  /** A line that the service wrote, or the node about what it wrote. */
  onOutput(line: string, stream: OutputStream): void;
  /** A message could not be taken for a fault of the node, to be logged; the worker is ended. */
  onFault(err: unknown): void;
  /** It is ready: takes what its service counts. Default: nobody does. */
  readonly countsOf?: ((manifest: ServiceManifest) => CountsReceiver) | undefined;
}

/** Takes what the service in one worker counts itself. */
export interface CountsReceiver {
  /** Returns what is wrong with it, in a message that the host of a worker would not send. */
  take(message: Extract<WorkerMessage, { readonly type: "metrics" }>): string | undefined;
  /** The worker has ended. */
  end(): void;
}

export interface ExecuteOptions extends Omit<Call, "id" | "deadlineMs" | "arguments"> {
  readonly kind: EndpointManifest["kind"];
  readonly arguments: Payload;
  readonly timeoutMs: number;
}
