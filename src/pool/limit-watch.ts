/**
 * Enforces the memory, thread, processor and disk limits of one worker from outside. A
 * worker that works is looked at ten times a second. One that has used no processor
 * time, and so can have taken neither memory nor disk, costs one read of a file
 * every two seconds. What cannot be measured has exceeded its limit. Of a worker that may
 * start processes, each limit is of all of them together.
 */
import { writeFileSync } from "node:fs";
import { CallPeaks, type Reading } from "./call-peaks.ts";
import { type Held, heldBy, MAX_MEASURED_FILES, Unmeasurable } from "./held.ts";
import {
  MAX_WORKER_DESCRIPTORS,
  mebibytes,
  outOfMemory,
  type WorkerCache,
  type WorkerLimits,
} from "./limits.ts";
import {
  type Pids,
  proportionalOf,
  residenceOfAll,
  sharedFolderBytes,
  TreeTime,
  treeOf,
} from "./process-tree.ts";
import { cpuTimeMs, type Residence, residenceOf } from "./usage.ts";

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
/** The pause between two looks, as a multiple of what one takes. */
const MIN_LOOK_PAUSE_RATIO = 20;
/** Measurements in a row that may fail because of this machine, which may lack descriptors itself. */
const MAX_FAILED_MEASUREMENTS = 5;
/**
 * Threads of a worker. A function in Python that is not async has one for each call, and numeric
 * libraries have a few for each processor; a machine runs out of them at some ten thousand.
 */
const MAX_WORKER_THREADS = 4_000;
/** Descriptors of each further process, besides those of the worker's own. */
const MAX_DESCRIPTORS_PER_PROCESS = 64;
/**
 * Measurements in a row, one a second, in which a worker with several processes may have sent
 * descriptors that nobody has received yet. What they hold cannot be measured.
 */
const MAX_IN_FLIGHT_MEASUREMENTS = 10;
/** Unused processor time that a worker may save up, per processor. */
const CPU_BURST_MS = 500;
/** Most that a worker can be overdrawn, per processor: many threads do not stop it for minutes. */
const MAX_CPU_DEBT_MS = 2_000;

export interface Watched {
  /** The worker's process id; undefined while it is not known. */
  pid(): number | undefined;
  /** A process beside it whose memory counts as its own. Default: none. */
  readonly first?: (() => number | undefined) | undefined;
  readonly scratchFolder: string;
  readonly cache?: WorkerCache | undefined;
  readonly limits: WorkerLimits;
  /** Kills the worker, which exceeded a limit. */
  kill(reason: string, cause?: "memory"): void;
}

export class LimitWatch implements Disposable {
  readonly #watched: Watched;
  #timer: NodeJS.Timeout;
  #idleLooks = 0;
  #lastMs = performance.now();
  #lastCpuMs = 0;
  /** Processor time left in the token bucket. */
  #creditMs: number;
  #stopped = false;
  #measuring = false;
  #heldDueMs = 0;
  #failures = 0;
  #inFlight = 0;
  /** Of a worker that may start processes, what stands in its shared folder. */
  #sharedFolderBytes = 0;
  #comparing = false;
  readonly #treeTime = new TreeTime();
  /** What the last look took of the node's own time. */
  #lookMs = 0;
  /** As last measured. */
  #held: Held | undefined;
  #lastBytes = Number.POSITIVE_INFINITY;
  #growing = false;
  #disposed = false;
  /** Of a worker without further processes: what several have together, one reading does not tell. */
  readonly #peaks: CallPeaks | undefined;

  constructor(watched: Watched) {
    this.#watched = watched;
    this.#creditMs = CPU_BURST_MS * Math.max(watched.limits.cpus, 1);
    this.#peaks = this.#startsProcesses ? undefined : new CallPeaks(() => this.#reading());
    this.#timer = setTimeout(() => this.#look(), 0);
  }

  /** A call is in the worker from now on. */
  callBegan(id: number): void {
    this.wake();
    this.#peaks?.began(id);
  }

  /**
   * A call has ended: returns the most memory that the worker held meanwhile, in bytes; undefined
   * where that is not known.
   */
  callEnded(id: number): number | undefined {
    return this.#peaks?.ended(id);
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
    const soonMs = this.#growing ? GROWING_INTERVAL_MS : WORKING_INTERVAL_MS;
    // Many threads take long to look at, and the node has other things to do.
    const workingMs = Math.max(soonMs, this.#lookMs * MIN_LOOK_PAUSE_RATIO);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#look(), isIdle ? IDLE_INTERVAL_MS : workingMs);
  }

  #look(): void {
    const pid = this.#watched.pid();
    const cpuMs = pid === undefined ? undefined : cpuTimeMs(pid);
    if (pid !== undefined && cpuMs !== undefined) {
      const beganMs = performance.now();
      const pids: Pids = this.#startsProcesses ? treeOf(pid) : [pid];
      this.#hold(pids, this.#startsProcesses ? this.#treeTime.at(pids) : cpuMs);
      this.#lookMs = performance.now() - beganMs;
    }
    this.#schedule();
  }

  get #startsProcesses(): boolean {
    return this.#watched.limits.processes > 0;
  }

  #hold(pids: Pids, cpuMs: number): void {
    this.#growing = false;
    const worked = cpuMs !== this.#lastCpuMs;
    this.#idleLooks = worked || this.#stopped || this.#inFlight > 0 ? 0 : this.#idleLooks + 1;
    this.#holdProcessor(pids, cpuMs);
    this.#holdProcesses(pids);
    // The look that finds it idle is the last to read the rest: nothing changes afterwards.
    if (worked || this.#inFlight > 0 || this.#idleLooks === MAX_IDLE_LOOKS) {
      this.#holdResidence(pids);
      void this.#holdRest(pids);
    }
  }

  #holdProcesses({ length }: Pids): void {
    const { limits, kill } = this.#watched;
    if (length - 1 > limits.processes) {
      kill(
        `out of processes: it started ${length - 1}, and at most ${limits.processes} may run at a time (processes in its code, or --processes)`,
      );
    }
  }

  #holdProcessor(pids: Pids, cpuMs: number): void {
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
    // Processes that it has started since, or that others have let go on, are stopped again.
    if (stop !== this.#stopped || (stop && pids.length > 1)) {
      this.#stopped = stop;
      for (const pid of pids) {
        signal(pid, stop ? "SIGSTOP" : "SIGCONT");
      }
    }
  }

  #holdResidence(pids: Pids): void {
    const { limits, kill } = this.#watched;
    const first = this.#watched.first?.();
    const counted: Pids = first === undefined ? pids : [...pids, first];
    const residence = residenceOfAll(counted);
    const sum = this.#withOthers(residence);
    this.#peaks?.seen({ ...residence, bytes: sum });
    this.#growing = sum - this.#lastBytes > limits.memoryBytes * GROWING_SHARE;
    this.#lastBytes = sum;
    if (sum > limits.memoryBytes && counted.length > 1) {
      void this.#holdTogether(counted);
    } else if (sum > limits.memoryBytes) {
      this.#peaks?.close();
      kill(outOfMemory(sum, limits), "memory");
    } else if (residence.threads > MAX_WORKER_THREADS) {
      kill(
        `out of threads: it started ${residence.threads}, and at most ${MAX_WORKER_THREADS} may be`,
      );
    }
  }

  /** What the worker holds now; undefined where it is not there any more. */
  #reading(): Reading | undefined {
    const pid = this.#watched.pid();
    const own = pid === undefined ? undefined : residenceOf(pid);
    if (pid === undefined || own === undefined || own.highestBytes === 0) {
      return undefined;
    }
    const first = this.#watched.first?.();
    const residence = first === undefined ? own : residenceOfAll([pid, first]);
    return { ...residence, bytes: this.#withOthers(residence) };
  }

  /** With the memory that is of no process alone. What is mapped of it counts once. */
  #withOthers({ bytes, sharedBytes }: Pick<Residence, "bytes" | "sharedBytes">): number {
    const held = (this.#held?.sharedBytes ?? 0) + this.#sharedFolderBytes;
    return bytes + Math.max(0, held - sharedBytes) + (this.#held?.socketBytes ?? 0);
  }

  /** Where the simple sum is too much, the kernel says how much it is if what several have counts once. */
  async #holdTogether(pids: Pids): Promise<void> {
    if (this.#comparing) {
      return;
    }
    this.#comparing = true;
    const { limits, kill } = this.#watched;
    const sum = this.#withOthers(await proportionalOf(pids));
    this.#comparing = false;
    if (sum > limits.memoryBytes && !this.#disposed) {
      this.#peaks?.close();
      kill(outOfMemory(sum, limits), "memory");
    }
  }

  async #holdRest(pids: Pids): Promise<void> {
    const isDue = performance.now() >= this.#heldDueMs || this.#idleLooks === MAX_IDLE_LOOKS;
    if (this.#measuring || !isDue) {
      return;
    }
    this.#measuring = true;
    for (const pid of pids) {
      killFirst(pid);
    }
    try {
      this.#held = await heldBy(pids, {
        scratchFolder: this.#watched.scratchFolder,
        cacheFolder: this.#watched.cache?.path,
      });
      this.#sharedFolderBytes = this.#startsProcesses ? await sharedFolderBytes(pids[0]) : 0;
      this.#failures = 0;
      this.#holdHeld(this.#held);
    } catch (err) {
      this.#endUnmeasured(err);
    }
    this.#measuring = false;
    this.#heldDueMs = performance.now() + HELD_INTERVAL_MS;
  }

  #holdHeld({ diskBytes, cachedBytes, files, descriptors, inFlight }: Held): void {
    const { limits, cache, kill } = this.#watched;
    const maxDescriptors = MAX_WORKER_DESCRIPTORS + MAX_DESCRIPTORS_PER_PROCESS * limits.processes;
    this.#inFlight = inFlight ? this.#inFlight + 1 : 0;
    const fault = cache?.fault();
    if (this.#inFlight > (limits.processes === 0 ? 0 : MAX_IN_FLIGHT_MEASUREMENTS)) {
      throw new Unmeasurable("sent files or sockets to itself, which it has not received");
    } else if (fault !== undefined) {
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
    } else if (descriptors > maxDescriptors) {
      kill(`out of descriptors: it opened ${descriptors}, and at most ${maxDescriptors} may be`);
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

/**
 * Makes the kernel kill this process first when the machine runs out of memory. Again and again: one
 * with a writable `/proc` could take it back.
 */
function killFirst(pid: number): void {
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
