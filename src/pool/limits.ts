/** The folder that a worker shares with the other workers of its deployment, and which outlives it. */
export interface WorkerCache {
  readonly path: string;
  readonly maxBytes: number;
  /** A worker begins to use it: it is there now, and measured until the last one has ended. */
  use(): Disposable;
  /** What is wrong with what is in it, for which a worker ends; undefined: nothing. */
  fault(): string | undefined;
}

/**
 * Resource limits of one worker of a deployment. A worker that is killed for a
 * limit ends with a reason that the owner of the service can read:
 *
 * - Memory: V8 limits its heap to the greater part of it and ends the process
 *   when that is full. Memory outside the heap, such as buffers, counts in the
 *   resident set size; the node watches it, with page tables and the buffers of
 *   sockets, and kills the worker above the limit. Where the machine has control groups,
 *   the kernel kills it a quarter above (`sandbox/memory-groups.ts`).
 *   If the machine runs out first, the kernel kills workers before the node.
 * - Processor: a token bucket of processor time. A worker that has overdrawn it
 *   is stopped (SIGSTOP) until it has filled again.
 * - Processes, where a worker may start some: the kernel bounds them with their threads, and the
 *   node ends a worker that has more than it may. All other limits are of all of them together.
 * - Disk: the scratch folder, and files that were deleted and are open or mapped. The
 *   kernel bounds one file, and the number of descriptors.
 * - Output: log lines beyond a rate are dropped and counted; bytes and messages
 *   beyond a rate stay in the pipe, as back-pressure on the worker.
 *
 * `limit-watch.ts` watches. The sandbox and the permission model limit processes,
 * threads, all other files, and the network (`sandbox/`, `deployments/permissions.ts`).
 */
import { LOG_LINES_PER_SECOND } from "../protocol/log-rate.ts";

export interface WorkerLimits {
  /** Heap and all other resident memory, with swap. */
  readonly memoryBytes: number;
  /** Processor time, in cores; 0.5 is half of one. */
  readonly cpus: number;
  /** Disk space of its scratch folder. */
  readonly diskBytes: number;
  /** Lines of output and of `ctx.log` together, as an average; bursts of 10 s pass. */
  readonly logLinesPerSecond: number;
  /** Processes that it may start besides its own. */
  readonly processes: number;
}

/**
 * Least memory of a worker: Node itself takes about 60 MB; with less a service does not even
 * start.
 */
export const MIN_WORKER_MEMORY_BYTES = 96 * 1024 ** 2;

/**
 * Files and sockets that a worker may have open. Each may hold memory or disk space; the kernel
 * refuses more with EMFILE.
 */
export const MAX_WORKER_DESCRIPTORS = 1_024;

/** What a worker may use unless its deployment says otherwise. */
export const DEFAULT_LIMITS: WorkerLimits = {
  memoryBytes: 512 * 1024 ** 2,
  cpus: 1,
  diskBytes: 1024 ** 3,
  logLinesPerSecond: LOG_LINES_PER_SECOND,
  processes: 0,
};

/** Threads that a worker that may start processes may have by itself. */
const MAX_OWN_THREADS = 256;
/** Threads for each of its processes: numeric libraries have one for each processor. */
const MAX_THREADS_PER_PROCESS = 16;

/** Processes and threads that the kernel lets a worker have; undefined where it starts no process. */
export function maxTasksOf({ processes }: WorkerLimits): number | undefined {
  return processes === 0 ? undefined : MAX_OWN_THREADS + MAX_THREADS_PER_PROCESS * processes;
}

/** Part of a worker's memory that its heap does not get, because Node needs it. */
const OUTSIDE_HEAP_BYTES = 96 * 1024 ** 2;

/** The flags of V8 for a memory limit. */
export function heapFlags({ memoryBytes }: WorkerLimits): string[] {
  const heapBytes = Math.max(memoryBytes / 2, memoryBytes - OUTSIDE_HEAP_BYTES);
  return [`--max-old-space-size=${Math.floor(heapBytes / 1024 ** 2)}`];
}

/** The reason of an end by V8 for lack of heap, found in a line of output; else undefined. */
export function heapExhausted(line: string, { memoryBytes }: WorkerLimits): string | undefined {
  return /^FATAL ERROR: .*(?:heap out of memory|Allocation failed)/i.test(line)
    ? `out of memory: its heap had no room left within its limit of ${mebibytes(memoryBytes)}`
    : undefined;
}

/** The message of an end for more memory than its limit. */
export function outOfMemory(usedBytes: number, { memoryBytes }: WorkerLimits): string {
  return `out of memory: it used ${mebibytes(usedBytes)} of ${mebibytes(memoryBytes)}`;
}

/** Why a service is ended that was not ready in time; `said` is what it said of itself, once loaded. */
export function notReadyAfter(readyTimeoutMs: number, said?: string): string {
  const why = said === undefined ? "does it wait for something at import?" : `${said};`;
  return `the service was not ready after ${readyTimeoutMs / 1_000} s: ${why} --ready-timeout gives it longer, as ready_timeout does in its code or in tessera.yaml`;
}

export function mebibytes(bytes: number): string {
  return `${Math.round(bytes / 1024 ** 2)} MiB`;
}
