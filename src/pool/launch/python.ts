/** Starts workers in Python, which has no permission model: the kernel's sandbox alone holds it. */
import { fileURLToPath } from "node:url";
import { SYSTEM_FILES } from "../sandbox/system-files.ts";
import type { LaunchOptions, WorkerProgram } from "./launch.ts";
import { workerEnvironment } from "./node.ts";

/** The folder with the package `tessera`, and no other: its host has the version of the node. */
const PYTHON_PACKAGES = fileURLToPath(new URL("../../../clients/python/src", import.meta.url));

/** Runs the host. The first entry of the path would otherwise be the working folder. */
const HOST_PROGRAM =
  "import sys; sys.path[0] = sys.argv.pop(); from tessera.host.main import main; main()";

export interface Interpreter {
  /** Its path, or its name on the `PATH` of `env`. */
  readonly interpreter: string;
  /** The variables that workers have besides those of every worker. */
  readonly env: { readonly [name: string]: string };
  /** Its files and those of its packages, by absolute paths, for a sandbox. Default: none. */
  readonly files?: readonly string[];
}

/** A worker in Python, run by an interpreter. */
export function pythonProgram({ interpreter, env, files = [] }: Interpreter) {
  return (options: LaunchOptions): WorkerProgram => ({
    command: [interpreter, "-c", HOST_PROGRAM, PYTHON_PACKAGES],
    // Text is UTF-8, whatever the locale of the node.
    env: {
      PYTHONUTF8: "1",
      ...(env.HOME === undefined && homeIn(options.scratchFolder)),
      ...(options.cache && cachesIn(options.cache.path)),
      ...env,
      ...workerEnvironment(options),
    },
    files: [PYTHON_PACKAGES, ...files, ...SYSTEM_FILES],
  });
}

/** Where packages keep what they have downloaded or compiled. */
function cachesIn(folder: string): { readonly [name: string]: string } {
  return {
    HF_HOME: `${folder}/huggingface`,
    TORCH_HOME: `${folder}/torch`,
    BENTOML_HOME: `${folder}/bentoml`,
    NUMBA_CACHE_DIR: `${folder}/numba`,
    TRITON_CACHE_DIR: `${folder}/triton`,
  };
}

/** For a worker without the home of a user: what packages keep there goes into its own folder. */
function homeIn(folder: string): { readonly [name: string]: string } {
  return {
    HOME: folder,
    XDG_CACHE_HOME: `${folder}/.cache`,
    BENTOML_HOME: `${folder}/bentoml`,
    PYTHONNOUSERSITE: "1",
    PYTHONDONTWRITEBYTECODE: "1",
  };
}
