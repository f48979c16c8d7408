/** How the operating-system process of a worker is started: the port. */
import type { ChildProcess } from "node:child_process";
import type { WorkerGpu } from "../gpus/gpus.ts";
import { maxTasksOf, type WorkerCache, type WorkerLimits } from "../limits.ts";
import type { WorkerImage } from "../sandbox/image.ts";
import type { MemoryGroup, MemoryGroups } from "../sandbox/memory-groups.ts";
import type { WorkerModel } from "./models.ts";

/** What a worker may do beyond computing. */
export interface WorkerRights {
  /** Files and folders that it may read, by absolute paths; folders with everything inside. */
  readonly read: readonly string[];
  /** Folders that it may read and write. */
  readonly write: readonly string[];
  /** It may load native code. */
  readonly addons: boolean;
  /** It may start threads. */
  readonly threads: boolean;
  /** It may start processes. */
  readonly processes: boolean;
  /** It may open SQLite databases, which Node's permission model does not check. */
  readonly sqlite: boolean;
}

/** What a launch knows of the egress proxy of a worker. */
export interface WorkerEgress {
  /** Its socket. */
  readonly path: string;
  /** Whether it may connect to this name or address of the loopback of the machine, at some port. */
  leadsOut(host: string): boolean;
}

export interface LaunchOptions {
  readonly rights: WorkerRights;
  /** Its working and temporary folder. */
  readonly scratchFolder: string;
  /** The folder that it shares with the other workers of its deployment. Default: none. */
  readonly cache?: WorkerCache | undefined;
  /** Default: none. */
  readonly models?: readonly WorkerModel[] | undefined;
  /** Environment variables in addition to those of every worker. */
  readonly env: { readonly [name: string]: string };
  /** Undefined: it has none. */
  readonly limits: WorkerLimits | undefined;
  /** What it has of the GPUs of the machine. Default: nothing. */
  readonly gpus?: readonly WorkerGpu[] | undefined;
  /** The folder with the files of its system packages, for a sandbox of the kernel. Default: none. */
  readonly layer?: string | undefined;
  /** The image that is its root, for a sandbox of the kernel. Default: none. */
  readonly image?: WorkerImage | undefined;
  /** Its egress proxy, for a launch that gives it no network of its own. Undefined: it reaches nobody. */
  readonly egress: WorkerEgress | undefined;
}

export interface LaunchedProcess {
  /** Its end is the worker's end; descriptor 3 is the channel. */
  readonly child: ChildProcess;
  /** The control group of its memory; undefined on a machine without groups. */
  readonly memory?: MemoryGroup | undefined;
  /** The process id of the worker itself; undefined until it is known. */
  pid(): number | undefined;
  /**
   * The first process of its sandbox, where the worker may reach into it, so that its memory counts
   * as the worker's.
   */
  readonly first?: (() => number | undefined) | undefined;
  /** Ends the worker and all that it has started, before `child` exits. */
  kill(): void;
  /** How the worker ended, from the exit of `child`. */
  endOf(code: number | null, signal: NodeJS.Signals | null): ProcessEnd;
}

interface ProcessEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/**
 * Starts a worker with a group for its memory, where it has limits and this machine has groups. A
 * worker that cannot be started leaves none.
 */
export function withMemoryGroup(
  groups: Pick<MemoryGroups, "make"> | undefined,
  limits: WorkerLimits | undefined,
  start: (memory: MemoryGroup | undefined) => LaunchedProcess,
): LaunchedProcess {
  const memory = limits && groups?.make(limits, maxTasksOf(limits));
  try {
    return start(memory);
  } catch (err) {
    memory?.[Symbol.dispose]();
    throw err;
  }
}

export type Launch = (options: LaunchOptions) => LaunchedProcess;

/** What runs in the process of a worker, in whatever boundary it is started. */
export interface WorkerProgram {
  readonly command: readonly [program: string, ...args: string[]];
  /** The whole environment. */
  readonly env: { readonly [name: string]: string };
  /** Files and folders that the program itself reads, by absolute paths. */
  readonly files: readonly string[];
}

export type ProgramOf = (options: LaunchOptions) => WorkerProgram;
