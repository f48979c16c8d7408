/**
 * Starts workers without a sandbox. With the path of `setpriv`, the kernel ends them when
 * the thread that started them ends; otherwise a worker that blocks its event loop may
 * outlive its node.
 */
import { spawn } from "node:child_process";
import type { Launch, ProgramOf } from "./launch.ts";

export function launchAlone(programOf: ProgramOf, setpriv: string | undefined): Launch {
  return (options) => {
    const { limits, scratchFolder } = options;
    const { command, env } = programOf(options);
    const [program, ...args] =
      setpriv === undefined ? command : [setpriv, "--pdeathsig", "KILL", ...command];
    const child = spawn(program, args, {
      env,
      stdio: ["ignore", "pipe", "pipe", "pipe"],
      // In its own process group, a worker that signals its whole group reaches only itself.
      ...(limits && { cwd: scratchFolder, detached: true }),
    });
    return {
      child,
      pid: () => child.pid,
      kill: () => void child.kill("SIGKILL"),
      endOf: (code, signal) => ({ code, signal }),
    };
  };
}
