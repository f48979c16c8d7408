/**
 * A control group (cgroups(7)) for the memory of each worker, in which the kernel counts all
 * that it makes for the worker: pages that nobody has mapped, page tables, buffers of sockets.
 * `limit-watch.ts` ends a worker above its limit and says why; the group bounds what it may hold
 * between two looks. The kernel kills what goes beyond, and that counts as out of memory.
 *
 * Of a worker that may start processes, the kernel bounds its processes and threads, too: in the
 * same group in version 2, and in version 1 in one of the controller of processes.
 *
 * The groups are made in the group of this process, in version 1 beside it, in version 2 where
 * this process is alone in it: a group that gives a controller to others may hold no process, so
 * this one moves into a group of its own there. A service manager or a container engine has to
 * let the user of the node write to its group (systemd: `Delegate=memory pids`).
 */
import type { ChildProcess } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { WorkerLimits } from "../limits.ts";
import { startTimeTicks } from "../usage.ts";

/**
 * What the kernel lets a worker have, as a share of its limit: so much more that the watch, which
 * says what it was used for, is nearly always first.
 */
const MAX_HELD_SHARE = 1.25;
/** The rest, up to one and a half of its limit: version 1 counts the buffers of TCP by themselves. */
const MAX_TCP_SHARE = 0.25;

/** Where this process is in version 2, beside the groups of its workers. */
const OWN_GROUP = "node";
/** The name of a worker's group: the id and the start of the process that made it, and a number. */
const GROUP_NAME = /^tessera-(\d+)-(\d+)-\d+$/;

/** The files of a group in a version of control groups: what it is given, and what it tells. */
interface Version {
  /** Without them, there is no limit. */
  readonly limits: (bytes: number) => Readonly<Record<string, number>>;
  /** Those that some kernels lack. */
  readonly extra: (bytes: number, tcpBytes: number) => Readonly<Record<string, number>>;
  /** Where it counts the processes that the kernel has killed. */
  readonly events: string;
  /** Where it says the most that it has held. */
  readonly peak: string;
}

const VERSIONS: { readonly v1: Version; readonly v2: Version } = {
  v1: {
    limits: (bytes) => ({ "memory.limit_in_bytes": bytes }),
    extra: (bytes, tcpBytes) => ({
      "memory.memsw.limit_in_bytes": bytes,
      "memory.kmem.tcp.limit_in_bytes": tcpBytes,
    }),
    events: "memory.oom_control",
    peak: "memory.max_usage_in_bytes",
  },
  v2: {
    limits: (bytes) => ({ "memory.max": bytes }),
    extra: () => ({ "memory.swap.max": 0, "memory.oom.group": 1 }),
    events: "memory.events",
    peak: "memory.peak",
  },
};

/** The file of a group that bounds its processes and threads. */
const TASKS_LIMIT = "pids.max";

/** The group of one worker. */
export interface MemoryGroup extends Disposable {
  /** Puts a process into it, and with it all that the process starts from now on. */
  enter(pid: number): void;
  /** The most bytes that it held, where the kernel has killed a process for that; else undefined. */
  exceeded(): number | undefined;
}

let made = 0;

export class MemoryGroups {
  readonly #folder: string;
  readonly #version: Version;
  /** Where groups bound processes and threads; undefined where none do. */
  readonly #tasksFolder: string | undefined;
  /** Groups of workers that have ended, whose last process had not quite. */
  readonly #left = new Set<string>();

  private constructor(folder: string, version: Version, tasksFolder: string | undefined) {
    this.#folder = folder;
    this.#version = version;
    this.#tasksFolder = tasksFolder;
  }

  /** Whether the kernel bounds the processes and threads of a group. */
  get boundsTasks(): boolean {
    return this.#tasksFolder !== undefined;
  }

  /**
   * The groups of this machine, or why this process can make none. `proc` is the file system of
   * proc(5).
   */
  static find(proc = "/proc"): MemoryGroups | string {
    if (process.platform !== "linux") {
      return "control groups are Linux's";
    }
    try {
      const { folder: own, version } = ownGroup(proc, "memory");
      const folder = version === "v2" ? delegated(own) : own;
      // What cannot be tried here would fail when a worker starts.
      const tried = (tasksFolder: string | undefined): MemoryGroups => {
        const groups = new MemoryGroups(folder, VERSIONS[version], tasksFolder);
        groups.#sweep();
        groups.make({ memoryBytes: 1024 ** 3 }, 1)[Symbol.dispose]();
        return groups;
      };
      try {
        return tried(version === "v2" ? folder : ownGroup(proc, "pids").folder);
      } catch {
        return tried(undefined);
      }
    } catch (err) {
      return err instanceof NoGroups ? err.message : explain(err as NodeJS.ErrnoException);
    }
  }

  /**
   * Makes the group of a worker, with at most `maxTasks` processes and threads where groups bound
   * them. Throws what the kernel says against it.
   */
  make({ memoryBytes }: Pick<WorkerLimits, "memoryBytes">, maxTasks?: number): MemoryGroup {
    this.#removeLeft();
    made += 1;
    const name = `tessera-${process.pid}-${startTimeTicks(process.pid) ?? 0}-${made}`;
    const folder = join(this.#folder, name);
    const { limits, extra, events, peak } = this.#version;
    const bytes = Math.ceil(memoryBytes * MAX_HELD_SHARE);
    const tcpBytes = Math.ceil(memoryBytes * MAX_TCP_SHARE);
    const folders = [folder];
    mkdirSync(folder);
    try {
      for (const [file, value] of Object.entries(limits(bytes))) {
        writeFileSync(join(folder, file), `${value}`);
      }
      if (this.#tasksFolder !== undefined && maxTasks !== undefined) {
        const tasks = join(this.#tasksFolder, name);
        if (tasks !== folder) {
          mkdirSync(tasks);
          folders.push(tasks);
        }
        writeFileSync(join(tasks, TASKS_LIMIT), `${maxTasks}`);
      }
    } catch (err) {
      this.#removeAll(folders);
      throw err;
    }
    for (const [file, value] of Object.entries(extra(bytes, tcpBytes))) {
      try {
        writeFileSync(join(folder, file), `${value}`);
      } catch {
        // This kernel counts no swap, or no buffers of TCP, by themselves.
      }
    }
    return {
      enter(pid) {
        for (const each of folders) {
          enter(each, pid);
        }
      },
      exceeded: () => {
        const [, kills = "0"] = /^oom_kill (\d+)$/m.exec(read(join(folder, events)) ?? "") ?? [];
        return kills === "0" ? undefined : Number(read(join(folder, peak)) ?? bytes);
      },
      [Symbol.dispose]: () => this.#removeAll(folders),
    };
  }

  /** Removes what nodes have left that were killed. */
  #sweep(): void {
    for (const folder of new Set([this.#folder, this.#tasksFolder ?? this.#folder])) {
      for (const name of readdirSync(folder)) {
        const [, pid, start] = GROUP_NAME.exec(name) ?? [];
        if (pid !== undefined && startTimeTicks(Number(pid)) !== Number(start)) {
          this.#remove(join(folder, name));
        }
      }
    }
  }

  #removeAll(folders: readonly string[]): void {
    for (const folder of folders) {
      this.#remove(folder);
    }
  }

  #removeLeft(): void {
    for (const folder of this.#left) {
      this.#remove(folder);
    }
  }

  #remove(folder: string): void {
    try {
      rmdirSync(folder);
      this.#left.delete(folder);
    } catch (err) {
      const isGone = (err as NodeJS.ErrnoException).code === "ENOENT";
      this.#left[isGone ? "delete" : "add"](folder);
    }
  }
}

/** Why there are no groups, for the operator. */
class NoGroups extends Error {}

/** The folder of the group that holds this process, by a controller. */
function ownGroup(
  proc: string,
  controller: "memory" | "pids",
): {
  readonly folder: string;
  readonly version: keyof typeof VERSIONS;
} {
  const own = readFileSync(join(proc, "self/cgroup"), "utf8");
  const mounts = readFileSync(join(proc, "self/mountinfo"), "utf8").split("\n").map(mountIn);
  const line = new RegExp(`^\\d+:(?:[^:]*,)?${controller}(?:,[^:]*)?:(.*)$`, "m");
  const [, first] = line.exec(own) ?? [];
  if (first !== undefined) {
    const mount = mounts.find(
      (each) => each?.type === "cgroup" && each.options.includes(controller),
    );
    return { folder: folderOf(mount, first), version: "v1" };
  }
  const [, second] = /^0::(.*)$/m.exec(own) ?? [];
  const mount = mounts.find((each) => each?.type === "cgroup2");
  return { folder: folderOf(mount, second), version: "v2" };
}

interface Mount {
  /** What of the file system is mounted. */
  readonly root: string;
  readonly folder: string;
  readonly type: string;
  readonly options: readonly string[];
}

/** A line of mountinfo (proc(5)). */
function mountIn(line: string): Mount | undefined {
  const [mount = "", system = ""] = line.split(" - ");
  const [, , , root, folder] = mount.split(" ");
  const [type, , options] = system.split(" ");
  return root === undefined || folder === undefined || type === undefined
    ? undefined
    : { root, folder, type, options: options?.split(",") ?? [] };
}

function folderOf(mount: Mount | undefined, group: string | undefined): string {
  if (mount === undefined || group === undefined) {
    throw new NoGroups("no controller of memory is mounted");
  }
  const { root, folder } = mount;
  if (root === "/") {
    return join(folder, group);
  }
  if (group !== root && !group.startsWith(`${root}/`)) {
    throw new NoGroups("the group of this process is not mounted");
  }
  return join(folder, group.slice(root.length));
}

/**
 * The group in which this process may give memory to others. It has to be alone there: what
 * else is in a group, such as the shell that started the node, is not the node's to move.
 */
function delegated(own: string): string {
  const folder = basename(own) === OWN_GROUP ? dirname(own) : own;
  const controllers = readFileSync(join(folder, "cgroup.controllers"), "utf8").trim().split(" ");
  if (!controllers.includes("memory")) {
    throw new NoGroups("the service manager gives its group no controller of memory");
  }
  if (folder === own) {
    const [first, ...others] = readFileSync(join(own, "cgroup.procs"), "utf8").trim().split("\n");
    if (Number(first) !== process.pid || others.length > 0) {
      throw new NoGroups("other processes are in the node's group");
    }
    mkdirSync(join(own, OWN_GROUP), { recursive: true });
    enter(join(own, OWN_GROUP), process.pid);
  }
  const given = ["memory", "pids"].filter((each) => controllers.includes(each));
  writeFileSync(join(folder, "cgroup.subtree_control"), given.map((each) => `+${each}`).join(" "));
  return folder;
}

function explain({ code = "", path }: NodeJS.ErrnoException): string {
  return ["EACCES", "EPERM", "EROFS"].includes(code)
    ? "the user of the node may not write to its group"
    : `${path ?? "its group"}: ${code}`;
}

/**
 * Puts a process that was just started into its group. Ends it where that fails, and throws why:
 * outside of the group its memory would have no bound, and nobody else knows of it.
 */
export function enterOrEnd(child: ChildProcess, group: MemoryGroup | undefined): void {
  try {
    if (child.pid !== undefined) {
      group?.enter(child.pid);
    }
  } catch (err) {
    child.kill("SIGKILL");
    throw err;
  }
}

function enter(folder: string, pid: number): void {
  try {
    writeFileSync(join(folder, "cgroup.procs"), `${pid}`);
  } catch (err) {
    // A process that has ended already holds nothing.
    if ((err as NodeJS.ErrnoException).code !== "ESRCH") {
      throw err;
    }
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return undefined;
  }
}
