/** Starts a program in bubblewrap, and finds its process from outside. */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { constants } from "node:os";
import type { Readable, Writable } from "node:stream";
import { bubblewrapArguments, type SandboxContents } from "./bubblewrap.ts";
import { enterOrEnd, type MemoryGroup } from "./memory-groups.ts";

/** The descriptors after those of the program itself: standard streams and one channel. */
const DESCRIPTORS = { filter: 4, info: 5 } as const;
/** What bubblewrap writes to the information descriptor is a few hundred bytes. */
const MAX_INFO_CHARACTERS = 4_096;

/**
 * The highest exit code of a program that ended by itself: bubblewrap, like a shell, reports
 * a signal that ended it as the signal's number with this added.
 */
const MAX_EXIT_CODE = 128;

interface SandboxedProgram extends Omit<SandboxContents, "filterDescriptor" | "infoDescriptor"> {
  /** How `bwrap` is started, before its own arguments. */
  readonly bubblewrap: readonly [program: string, ...args: string[]];
  /** The seccomp filter. */
  readonly filter: Buffer;
  /** The group that holds it. Default: none. */
  readonly memory?: MemoryGroup | undefined;
  readonly program: string;
  readonly args: readonly string[];
  /** The whole environment. Bubblewrap's own processes get the same, because the program can read theirs. */
  readonly env: { readonly [name: string]: string };
}

export interface SandboxedProcess {
  /** Bubblewrap. When it ends, so does everything inside. Descriptor 3 is a channel. */
  readonly child: ChildProcess;
  /** The process id of the program as this process sees it; undefined before it has begun. */
  pid(): number | undefined;
  /** The process id of the first process inside, which is bubblewrap's; undefined until it is told. */
  first(): number | undefined;
  /**
   * Ends everything inside. Bubblewrap exits when all of it is gone, whereas one that is
   * killed itself exits before.
   */
  kill(): void;
}

export function spawnSandboxed(options: SandboxedProgram): SandboxedProcess {
  const { bubblewrap, filter, memory, program, args, env, ...contents } = options;
  const [starter, ...before] = bubblewrap;
  const child = spawn(
    starter,
    [
      ...before,
      ...bubblewrapArguments({
        ...contents,
        filterDescriptor: DESCRIPTORS.filter,
        infoDescriptor: DESCRIPTORS.info,
      }),
      program,
      ...args,
    ],
    // In a process group, in which bubblewrap's child is, too, until it has its own session.
    { env, detached: true, stdio: ["ignore", "pipe", "pipe", "pipe", "pipe", "pipe"] },
  );
  const filterPipe = child.stdio[DESCRIPTORS.filter] as Writable | undefined;
  // Bubblewrap has ended before it read the filter; its exit says why.
  filterPipe?.on("error", () => {});
  // Before it has read the filter, bubblewrap has started nothing that would not be in the group.
  enterOrEnd(child, memory);
  filterPipe?.end(filter);
  const info = child.stdio.at(DESCRIPTORS.info) as Readable | undefined;
  let told = "";
  info?.on("error", () => {});
  info?.setEncoding("utf8").on("data", (text: string) => {
    told = (told + text).slice(0, MAX_INFO_CHARACTERS);
  });
  let pid: number | undefined;
  return {
    child,
    pid: () => (pid ??= onlyChildOf(initIn(told))),
    first: () => initIn(told),
    kill: () => killInside(child, initIn(told)),
  };
}

/**
 * The kernel ends all processes of a namespace with its first one, and lets that one go last.
 * Before bubblewrap has named that one, its group is ended: a child that waits for it would
 * wait for ever.
 */
function killInside({ pid, exitCode, signalCode }: ChildProcess, init: number | undefined): void {
  if (pid === undefined || exitCode !== null || signalCode !== null) {
    return;
  }
  try {
    process.kill(init ?? -pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}

/** How the program ended, from how bubblewrap did. */
export function exitInside(
  code: number | null,
  signal: NodeJS.Signals | null,
): { readonly code: number | null; readonly signal: NodeJS.Signals | null } {
  const number = (code ?? 0) - MAX_EXIT_CODE;
  const [name] = Object.entries(constants.signals).find(([, each]) => each === number) ?? [];
  return name === undefined ? { code, signal } : { code: null, signal: name as NodeJS.Signals };
}

/** The process with the id 1 inside, which bubblewrap tells of. */
function initIn(info: string): number | undefined {
  const [, pid] = /"child-pid":\s*(\d+)/.exec(info) ?? [];
  return pid === undefined ? undefined : Number(pid);
}

function onlyChildOf(pid: number | undefined): number | undefined {
  if (pid === undefined) {
    return undefined;
  }
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
    return children === "" ? undefined : Number(children.split(" ")[0]);
  } catch {
    return undefined;
  }
}
