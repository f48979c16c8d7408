/**
 * Resource limits of one worker of a deployment. A worker that is killed for a
 * limit ends with a reason that the owner of the service can read:
 *
 * - Memory: V8 limits its heap to the greater part of it and ends the process
 *   when that is full. Memory outside the heap, such as buffers, counts in the
 *   resident set size; the node watches it and kills the worker above the limit.
 *   If the machine runs out first, the kernel kills workers before the node.
 * - Processor: a token bucket of processor time. A worker that has overdrawn it
 *   is stopped (SIGSTOP) until it has filled again.
 * - Disk: the scratch folder, and open files that were deleted.
 * - Output: log lines beyond a rate are dropped and counted; bytes and messages
 *   beyond a rate stay in the pipe, as back-pressure on the worker.
 *
 * The permission model limits processes, threads and all other files
 * (`deployments/permissions.ts`). The network is not limited.
 */
import { writeFileSync } from "node:fs";
import { cpuTimeMs, residentBytes, storedBytes } from "./usage.ts";

export interface WorkerLimits {
  /** Heap and all other resident memory, with swap. */
  readonly memoryBytes: number;
  /** Processor time, in cores; 0.5 is half of one. */
  readonly cpus: number;
  /** Disk space of its scratch folder. */
  readonly diskBytes: number;
  /** Lines of output and of `ctx.log` together, as an average; bursts of 10 s pass. */
  readonly logLinesPerSecond: number;
}

/**
 * Least memory of a worker: Node itself takes about 60 MB; with less a service does not even
 * start.
 */
export const MIN_WORKER_MEMORY_BYTES = 96 * 1024 ** 2;

/** What a worker may use unless its deployment says otherwise. */
export const DEFAULT_LIMITS: WorkerLimits = {
  memoryBytes: 512 * 1024 ** 2,
  cpus: 1,
  diskBytes: 1024 ** 3,
  logLinesPerSecond: 100,
};

/** Interval at which a worker's processor time is checked. */
const WORKER_LIMITS_INTERVAL_MS = 100;
/** Ticks after which memory and disk are read even if the worker used no processor time. */
const MAX_TICKS_BETWEEN_FULL_CHECKS = 10;
/** Unused processor time that a worker may save up, per processor. */
const CPU_BURST_MS = 500;
/** Part of a worker's memory that its heap does not get, because Node needs it. */
const OUTSIDE_HEAP_BYTES = 96 * 1024 ** 2;

/** The flags of V8 for a memory limit. */
export function heapFlags({ memoryBytes }: WorkerLimits): string[] {
  const heapBytes = Math.max(memoryBytes / 2, memoryBytes - OUTSIDE_HEAP_BYTES);
  return [`--max-old-space-size=${Math.floor(heapBytes / 1024 ** 2)}`];
}

export interface Watched {
  readonly pid: number;
  readonly scratchFolder: string;
  readonly limits: WorkerLimits;
  /** Kills the worker, which exceeded a limit. */
  kill(reason: string): void;
}

/** Enforces the memory, processor and disk limits of one worker. */
export class LimitWatch implements Disposable {
  readonly #watched: Watched;
  readonly #timer: NodeJS.Timeout;
  #ticks = 0;
  #lastMs = performance.now();
  #lastCpuMs = 0;
  /** Processor time left in the token bucket. */
  #creditMs: number;
  #stopped = false;
  #measuring = false;

  constructor(watched: Watched) {
    this.#watched = watched;
    this.#creditMs = CPU_BURST_MS * Math.max(watched.limits.cpus, 1);
    chooseFirst(watched.pid);
    this.#timer = setInterval(() => this.#tick(), WORKER_LIMITS_INTERVAL_MS);
  }

  /** Processor time used until the last tick. */
  get lastCpuMs(): number {
    return this.#lastCpuMs;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #tick(): void {
    const { pid } = this.#watched;
    const cpuMs = cpuTimeMs(pid);
    if (cpuMs === undefined) {
      return;
    }
    const worked = cpuMs !== this.#lastCpuMs;
    const isFullCheck = this.#ticks++ % MAX_TICKS_BETWEEN_FULL_CHECKS === 0;
    this.#holdProcessor(cpuMs);
    if (worked || isFullCheck) {
      this.#holdMemory();
    }
    if (isFullCheck) {
      void this.#holdDisk();
    }
  }

  #holdProcessor(cpuMs: number): void {
    const { pid, limits } = this.#watched;
    const nowMs = performance.now();
    const earnedMs = (nowMs - this.#lastMs) * limits.cpus;
    const mostMs = CPU_BURST_MS * limits.cpus;
    this.#creditMs = Math.max(
      Math.min(this.#creditMs + earnedMs, Math.max(mostMs, this.#creditMs)) -
        (cpuMs - this.#lastCpuMs),
      // A floor, so that a burst of many threads does not stop the worker for minutes.
      -2_000 * limits.cpus,
    );
    this.#lastMs = nowMs;
    this.#lastCpuMs = cpuMs;
    const stop = this.#creditMs < 0;
    if (stop !== this.#stopped) {
      this.#stopped = stop;
      signal(pid, stop ? "SIGSTOP" : "SIGCONT");
    }
  }

  #holdMemory(): void {
    const { pid, limits, kill } = this.#watched;
    const usedBytes = residentBytes(pid);
    if (usedBytes !== undefined && usedBytes > limits.memoryBytes) {
      kill(`out of memory: it used ${mebibytes(usedBytes)} of ${mebibytes(limits.memoryBytes)}`);
    }
  }

  async #holdDisk(): Promise<void> {
    if (this.#measuring) {
      return;
    }
    this.#measuring = true;
    const { pid, scratchFolder, limits, kill } = this.#watched;
    const { bytes, files, maxFiles } = await storedBytes(pid, scratchFolder);
    this.#measuring = false;
    if (bytes > limits.diskBytes) {
      kill(
        `out of disk: it stored ${mebibytes(bytes)} of ${mebibytes(limits.diskBytes)} in its scratch folder`,
      );
    } else if (files > maxFiles) {
      kill(`out of disk: it stored more than ${maxFiles} files in its scratch folder`);
    }
  }
}

/** The reason of an end by V8 for lack of heap, found in a line of output; else undefined. */
export function heapExhausted(line: string, { memoryBytes }: WorkerLimits): string | undefined {
  return /^FATAL ERROR: .*(?:heap out of memory|Allocation failed)/i.test(line)
    ? `out of memory: its heap had no room left within its limit of ${mebibytes(memoryBytes)}`
    : undefined;
}

function mebibytes(bytes: number): string {
  return `${Math.round(bytes / 1024 ** 2)} MiB`;
}

/** Makes the kernel kill this process first when the machine runs out of memory. */
function chooseFirst(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, "1000");
  } catch {
    // Not Linux, or the process has ended already.
  }
}

function signal(pid: number, name: "SIGSTOP" | "SIGCONT"): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended.
  }
}
