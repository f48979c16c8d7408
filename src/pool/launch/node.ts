/** Starts workers in Node, under its permission model. */
import { spawn } from "node:child_process";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { heapFlags } from "../limits.ts";
import type { Launch, LaunchOptions, WorkerRights } from "./launch.ts";

const WORKER_PROGRAM = fileURLToPath(
  new URL(`../../worker/main${extname(import.meta.url)}`, import.meta.url),
);

/** The command line of a worker. */
export function nodeCommand({ rights, limits }: LaunchOptions): [string, ...string[]] {
  return [
    process.execPath,
    ...permissionFlags(rights),
    ...(limits ? heapFlags(limits) : []),
    "--disable-warning=ExperimentalWarning",
    WORKER_PROGRAM,
  ];
}

/** The variables of every worker, and its own. */
export function workerEnvironment({ env, scratchFolder }: LaunchOptions): {
  readonly [name: string]: string;
} {
  return { ...env, TMPDIR: scratchFolder, LANG: "C.UTF-8" };
}

/**
 * Starts workers without a sandbox. With the path of `setpriv`, the kernel ends them when
 * the thread that started them ends; otherwise a worker that blocks its event loop may
 * outlive its node.
 */
export function launchNode(setpriv: string | undefined): Launch {
  return (options) => {
    const { limits, scratchFolder } = options;
    const command = nodeCommand(options);
    const [program, ...args] =
      setpriv === undefined ? command : [setpriv, "--pdeathsig", "KILL", ...command];
    const child = spawn(program, args, {
      env: workerEnvironment(options),
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

/** The flags of Node's permission model. */
export function permissionFlags({ read, write, addons, threads, sqlite }: WorkerRights): string[] {
  return [
    "--permission",
    ...[...read, ...write].map((path) => `--allow-fs-read=${path}`),
    ...write.map((path) => `--allow-fs-write=${path}`),
    ...(addons ? ["--allow-addons"] : []),
    ...(threads ? ["--allow-worker"] : []),
    // Silences Node's warning about what the operator has chosen to allow.
    ...(addons || threads ? ["--disable-warning=SecurityWarning"] : []),
    ...(sqlite ? [] : ["--no-experimental-sqlite"]),
  ];
}
