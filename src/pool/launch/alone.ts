/**
 * Starts workers without a sandbox. With the path of `setpriv`, the kernel ends them when
 * the thread that started them ends; otherwise a worker that blocks its event loop may
 * outlive its node. With that of `prlimit`, it keeps the limits of each process.
 */
import { spawn } from "node:child_process";
import { gpuEnvironment } from "../sandbox/gpus.ts";
import { enterOrEnd, type MemoryGroups } from "../sandbox/memory-groups.ts";
import { type Launch, type ProgramOf, withMemoryGroup } from "./launch.ts";
import { withProcessLimits } from "./process-limits.ts";

/** The programs of util-linux that it starts workers by; undefined where they are missing. */
export interface LaunchTools {
  readonly setpriv?: string | undefined;
  readonly prlimit?: string | undefined;
  /** Where each worker has a group for its memory. Default: nowhere. */
  readonly memoryGroups?: Pick<MemoryGroups, "make"> | undefined;
}

export function launchAlone(
  programOf: ProgramOf,
  { setpriv, prlimit, memoryGroups }: LaunchTools = {},
): Launch {
  return (options) => {
    const { limits, scratchFolder, gpus = [] } = options;
    const { command, env } = programOf(options);
    const limited = withProcessLimits(command, options, prlimit);
    const [program, ...args] =
      setpriv === undefined ? limited : [setpriv, "--pdeathsig", "KILL", ...limited];
    return withMemoryGroup(memoryGroups, limits, (memory) => {
      const child = spawn(program, args, {
        env: { ...(limits && gpuEnvironment(gpus, { hasOthers: true })), ...env },
        stdio: ["ignore", "pipe", "pipe", "pipe"],
        // In its own process group, a worker that signals its whole group reaches only itself.
        ...(limits && { cwd: scratchFolder, detached: true }),
      });
      enterOrEnd(child, memory);
      return {
        child,
        memory,
        pid: () => child.pid,
        kill: () => void child.kill("SIGKILL"),
        endOf: (code, signal) => ({ code, signal }),
      };
    });
  };
}
