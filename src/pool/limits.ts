/**
 * What one worker of a hosted deployment may use. Each limit ends in a reason
 * that the person whose service it is can read:
 *
 * - Memory: V8 keeps its heap below the greater part of it and ends the process
 *   when it cannot; what lies outside of the heap, such as buffers, counts in
 *   the resident size, which the node watches and kills for. Should the machine
 *   run out first, the kernel is told to take workers before the node.
 * - Processor: a budget that fills steadily; a worker that has overdrawn it is
 *   stopped until it has filled again.
 * - Disk: the scratch folder, and files that are open but have no name any more.
 * - Output: log lines beyond a rate are counted instead of kept; bytes and
 *   messages beyond a rate are left in the pipe, where the worker waits.
 *
 * Processes, threads and files elsewhere are the permission model's
 * (`deployments/permissions.ts`). The network is not limited.
 */
import { writeFileSync } from "node:fs";
import { cpuTimeMs, residentBytes, storedBytes } from "./usage.ts";

export interface WorkerLimits {
  readonly memoryBytes: number;
  /** Processor time, in cores; 0.5 is half of one. */
  readonly cpus: number;
  /** Of its scratch folder. */
  readonly diskBytes: number;
  /** Lines of output and of `ctx.log` together, in the long run. */
  readonly logLinesPerSecond: number;
}

/** Node itself takes about 60 MB; with less a service does not even start. */
export const MIN_MEMORY_BYTES = 96 * 1024 ** 2;

export const DEFAULT_LIMITS: WorkerLimits = {
  memoryBytes: 512 * 1024 ** 2,
  cpus: 1,
  diskBytes: 1024 ** 3,
  logLinesPerSecond: 100,
};

const TICK_MS = 100;
/** Memory is read when processor time was used, and every so many ticks anyhow. */
const TICKS_PER_ROUND = 10;
/** Unused processor time is kept for so long. */
const BURST_MS = 500;
/** What Node needs besides the heap. */
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
  /** A limit was exceeded. */
  kill(reason: string): void;
}

/** Holds one worker to its limits for as long as it lives. */
export class LimitWatch implements Disposable {
  readonly #watched: Watched;
  readonly #timer: NodeJS.Timeout;
  #ticks = 0;
  #lastMs = performance.now();
  #lastCpuMs = 0;
  /** Processor time that may still be used. */
  #creditMs: number;
  #stopped = false;
  #measuring = false;

  constructor(watched: Watched) {
    this.#watched = watched;
    this.#creditMs = BURST_MS * Math.max(watched.limits.cpus, 1);
    chooseFirst(watched.pid);
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
  }

  /** Processor time that it had used when it was last looked at. */
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
    const round = this.#ticks++ % TICKS_PER_ROUND === 0;
    this.#holdProcessor(cpuMs);
    if (worked || round) {
      this.#holdMemory();
    }
    if (round) {
      void this.#holdDisk();
    }
  }

  #holdProcessor(cpuMs: number): void {
    const { pid, limits } = this.#watched;
    const nowMs = performance.now();
    const earnedMs = (nowMs - this.#lastMs) * limits.cpus;
    const mostMs = BURST_MS * limits.cpus;
    this.#creditMs = Math.max(
      Math.min(this.#creditMs + earnedMs, Math.max(mostMs, this.#creditMs)) -
        (cpuMs - this.#lastCpuMs),
      // Many threads at once do not stop it for minutes.
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

/** Why a worker ended that V8 has ended, from the last that it wrote; undefined for anything else. */
export function heapExhausted(line: string, { memoryBytes }: WorkerLimits): string | undefined {
  return /^FATAL ERROR: .*(?:heap out of memory|Allocation failed)/i.test(line)
    ? `out of memory: its heap had no room left within its limit of ${mebibytes(memoryBytes)}`
    : undefined;
}

function mebibytes(bytes: number): string {
  return `${Math.round(bytes / 1024 ** 2)} MiB`;
}

/** When the machine runs out of memory, the kernel ends this process before others. */
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
