/**
 * Starts workers in Python. Python has no permission model: a worker may do what its user
 * may, so that only the operator's own service runs like this.
 */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Launch } from "./launch.ts";
import { workerEnvironment } from "./node.ts";

/** The folder with the package `tessera`, and no other: its host has the version of the node. */
export const PYTHON_PACKAGES = fileURLToPath(
  new URL("../../../clients/python/src", import.meta.url),
);

/** Runs the host. The first entry of the path would otherwise be the working folder. */
const HOST_PROGRAM =
  "import sys; sys.path[0] = sys.argv.pop(); from tessera.host.main import main; main()";

export interface Interpreter {
  /** Its path, or its name on the `PATH` of `env`. */
  readonly interpreter: string;
  /** The variables that workers have besides those of every worker. */
  readonly env: { readonly [name: string]: string };
}

/** Starts workers by an interpreter. The kernel ends them with their node, as they ask it to. */
export function launchPython({ interpreter, env }: Interpreter): Launch {
  return (options) => {
    const child = spawn(interpreter, ["-c", HOST_PROGRAM, PYTHON_PACKAGES], {
      // Text is UTF-8, whatever the locale of the node.
      env: { PYTHONUTF8: "1", ...env, ...workerEnvironment(options) },
      stdio: ["ignore", "pipe", "pipe", "pipe"],
    });
    return {
      child,
      pid: () => child.pid,
      kill: () => void child.kill("SIGKILL"),
      endOf: (code, signal) => ({ code, signal }),
    };
  };
}
