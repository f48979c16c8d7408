/**
 * Enforces the memory, thread, processor and disk limits of one worker from outside. A
 * worker that works is looked at ten times a second. One that has used no processor
 * time, and so can have taken neither memory nor disk, costs one read of a file
 * every two seconds. What cannot be measured has exceeded its limit.
 */
import { writeFileSync } from "node:fs";
import { type Held, heldBy, MAX_MEASURED_FILES, Unmeasurable } from "./held.ts";
import {
  MAX_WORKER_DESCRIPTORS,
  mebibytes,
  outOfMemory,
  type WorkerCache,
  type WorkerLimits,
} from "./limits.ts";
import { cpuTimeMs, residenceOf } from "./usage.ts";

/** Interval at which the processor time and the memory of a working worker are read. */
const WORKING_INTERVAL_MS = 100;
/** The same for a worker that uses no processor time. */
const IDLE_INTERVAL_MS = 2_000;
/** Looks without processor time after which a worker is idle: 1 s. */
const MAX_IDLE_LOOKS = 10;
/** The same while its memory grows by more than a share of its limit between two looks. */
const GROWING_INTERVAL_MS = 10;
/** That share. */
const GROWING_SHARE = 1 / 16;
/** Interval at which the disk space, the sockets and the descriptors of a working worker are measured. */
const HELD_INTERVAL_MS = 1_000;
/** Measurements in a row that may fail because of this machine, which may lack descriptors itself. */
const MAX_FAILED_MEASUREMENTS = 5;
/**
 * Threads of a worker. A function in Python that is not async has one for each call, and numeric
 * libraries have a few for each processor; a machine runs out of them at some ten thousand.
 */
const MAX_WORKER_THREADS = 4_000;
/** Unused processor time that a worker may save up, per processor. */
const CPU_BURST_MS = 500;
/** Most that a worker can be overdrawn, per processor: many threads do not stop it for minutes. */
const MAX_CPU_DEBT_MS = 2_000;

export interface Watched {
  /** The worker's process id; undefined while it is not known. */
  pid(): number | undefined;
  readonly scratchFolder: string;
  readonly cache?: WorkerCache | undefined;
  readonly limits: WorkerLimits;
  /** Kills the worker, which exceeded a limit. */
  kill(reason: string, cause?: "memory"): void;
}

export class LimitWatch implements Disposable {
  readonly #watched: Watched;
  #timer: NodeJS.Timeout;
  #isFirst = true;
  #idleLooks = 0;
  #lastMs = performance.now();
  #lastCpuMs = 0;
  /** Processor time left in the token bucket. */
  #creditMs: number;
  #stopped = false;
  #measuring = false;
  #heldDueMs = 0;
  #failures = 0;
  /** As last measured. */
  #held: Held | undefined;
  #lastBytes = Number.POSITIVE_INFINITY;
  #growing = false;
  #disposed = false;

  constructor(watched: Watched) {
    this.#watched = watched;
    this.#creditMs = CPU_BURST_MS * Math.max(watched.limits.cpus, 1);
    this.#timer = setTimeout(() => this.#look(), 0);
  }

  /** Processor time used until the last look. */
  get lastCpuMs(): number {
    return this.#lastCpuMs;
  }

  /** The worker gets something to do: it is watched closely again. */
  wake(): void {
    if (this.#idleLooks >= MAX_IDLE_LOOKS && !this.#disposed) {
      this.#idleLooks = 0;
      this.#schedule();
    }
  }

  [Symbol.dispose](): void {
    this.#disposed = true;
    clearTimeout(this.#timer);
  }

  #schedule(): void {
    const isIdle = this.#idleLooks >= MAX_IDLE_LOOKS;
    const workingMs = this.#growing ? GROWING_INTERVAL_MS : WORKING_INTERVAL_MS;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#look(), isIdle ? IDLE_INTERVAL_MS : workingMs);
  }

  #look(): void {
    const pid = this.#watched.pid();
    const cpuMs = pid === undefined ? undefined : cpuTimeMs(pid);
    if (pid !== undefined && cpuMs !== undefined) {
      this.#hold(pid, cpuMs);
    }
    this.#schedule();
  }

  #hold(pid: number, cpuMs: number): void {
    if (this.#isFirst) {
      this.#isFirst = false;
      chooseFirst(pid);
    }
    this.#growing = false;
    const worked = cpuMs !== this.#lastCpuMs;
    this.#idleLooks = worked || this.#stopped ? 0 : this.#idleLooks + 1;
    this.#holdProcessor(pid, cpuMs);
    // The look that finds it idle is the last to read the rest: nothing changes afterwards.
    if (worked || this.#idleLooks === MAX_IDLE_LOOKS) {
      this.#holdResidence(pid);
      void this.#holdRest(pid);
    }
  }

  #holdProcessor(pid: number, cpuMs: number): void {
    const { limits } = this.#watched;
    const nowMs = performance.now();
    const earnedMs = (nowMs - this.#lastMs) * limits.cpus;
    const mostMs = CPU_BURST_MS * limits.cpus;
    this.#creditMs = Math.max(
      Math.min(this.#creditMs + earnedMs, Math.max(mostMs, this.#creditMs)) -
        (cpuMs - this.#lastCpuMs),
      -MAX_CPU_DEBT_MS * limits.cpus,
    );
    this.#lastMs = nowMs;
    this.#lastCpuMs = cpuMs;
    const stop = this.#creditMs < 0;
    if (stop !== this.#stopped) {
      this.#stopped = stop;
      signal(pid, stop ? "SIGSTOP" : "SIGCONT");
    }
  }

  #holdResidence(pid: number): void {
    const { limits, kill } = this.#watched;
    const { bytes = 0, sharedBytes = 0, threads = 0 } = residenceOf(pid) ?? {};
    // What it has mapped of the memory that it shares counts once.
    const unmappedBytes = Math.max(0, (this.#held?.sharedBytes ?? 0) - sharedBytes);
    const sum = bytes + unmappedBytes + (this.#held?.socketBytes ?? 0);
    this.#growing = sum - this.#lastBytes > limits.memoryBytes * GROWING_SHARE;
    this.#lastBytes = sum;
    if (sum > limits.memoryBytes) {
      kill(outOfMemory(sum, limits), "memory");
    } else if (threads > MAX_WORKER_THREADS) {
      kill(`out of threads: it started ${threads}, and at most ${MAX_WORKER_THREADS} may be`);
    }
  }

  async #holdRest(pid: number): Promise<void> {
    const isDue = performance.now() >= this.#heldDueMs || this.#idleLooks === MAX_IDLE_LOOKS;
    if (this.#measuring || !isDue) {
      return;
    }
    this.#measuring = true;
    try {
      this.#held = await heldBy(pid, {
        scratchFolder: this.#watched.scratchFolder,
        cacheFolder: this.#watched.cache?.path,
      });
      this.#failures = 0;
      this.#holdHeld(this.#held);
    } catch (err) {
      this.#endUnmeasured(err);
    }
    this.#measuring = false;
    this.#heldDueMs = performance.now() + HELD_INTERVAL_MS;
  }

  #holdHeld({ diskBytes, cachedBytes, files, descriptors }: Held): void {
    const { limits, cache, kill } = this.#watched;
    const fault = cache?.fault();
    if (fault !== undefined) {
      kill(fault);
    } else if (cache !== undefined && cachedBytes > cache.maxBytes) {
      kill(
        `out of disk: it holds ${mebibytes(cachedBytes)} of ${mebibytes(cache.maxBytes)} of files that were deleted from its cache`,
      );
    } else if (diskBytes > limits.diskBytes) {
      kill(
        `out of disk: it stored ${mebibytes(diskBytes)} of ${mebibytes(limits.diskBytes)} in its scratch folder`,
      );
    } else if (files > MAX_MEASURED_FILES) {
      kill(`out of disk: it stored more than ${MAX_MEASURED_FILES} files in its scratch folder`);
    } else if (descriptors > MAX_WORKER_DESCRIPTORS) {
      kill(
        `out of descriptors: it opened ${descriptors}, and at most ${MAX_WORKER_DESCRIPTORS} may be`,
      );
    }
  }

  #endUnmeasured(err: unknown): void {
    if (err instanceof Unmeasurable) {
      this.#watched.kill(`out of disk: it ${err.message}`);
      return;
    }
    this.#failures += 1;
    if (this.#failures > MAX_FAILED_MEASUREMENTS) {
      const { code = "" } = err as NodeJS.ErrnoException;
      this.#watched.kill(`its use of memory and disk could not be measured (${code})`);
    }
  }
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
