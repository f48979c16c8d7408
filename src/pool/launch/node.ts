/** Starts workers in Node, under its permission model. */
import { realpathSync } from "node:fs";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { heapFlags } from "../limits.ts";
import { type LaunchTools, launchAlone } from "./alone.ts";
import type { Launch, LaunchOptions, WorkerProgram, WorkerRights } from "./launch.ts";
import { modelEnvironment } from "./models.ts";

const WORKER_PROGRAM = fileURLToPath(
  new URL(`../../worker/main${extname(import.meta.url)}`, import.meta.url),
);

/** A worker in Node, under its permission model. */
export function nodeProgram(options: LaunchOptions): WorkerProgram {
  const { rights, limits, layer, image } = options;
  const command = [
    ...permissionFlags(rights),
    // The sandbox has nothing but its image, or its packages, and what it was given.
    ...(image === undefined && layer === undefined ? [] : ["--allow-fs-read=*"]),
    ...(limits ? heapFlags(limits) : []),
    "--disable-warning=ExperimentalWarning",
    WORKER_PROGRAM,
  ];
  return {
    command: [process.execPath, ...command],
    env: workerEnvironment(options),
    files: [realpathSync(process.execPath)],
  };
}

/** The variables of every worker, and its own. */
export function workerEnvironment({ env, scratchFolder, cache, models = [] }: LaunchOptions): {
  readonly [name: string]: string;
} {
  const caches = cache && { TESSERA_CACHE: cache.path, XDG_CACHE_HOME: cache.path };
  const own = modelEnvironment(models, scratchFolder);
  return { ...caches, ...own, ...env, TMPDIR: scratchFolder, LANG: "C.UTF-8" };
}

/** Starts workers in Node without a sandbox; see `launchAlone`. */
export function launchNode(tools?: LaunchTools): Launch {
  return launchAlone(nodeProgram, tools);
}

/** The flags of Node's permission model. */
export function permissionFlags(rights: WorkerRights): string[] {
  const { read, write, addons, threads, processes, sqlite } = rights;
  return [
    "--permission",
    ...[...read, ...write].map((path) => `--allow-fs-read=${path}`),
    ...write.map((path) => `--allow-fs-write=${path}`),
    ...(addons ? ["--allow-addons"] : []),
    ...(threads ? ["--allow-worker"] : []),
    ...(processes ? ["--allow-child-process"] : []),
    // Silences Node's warning about what the operator has chosen to allow.
    ...(addons || threads || processes ? ["--disable-warning=SecurityWarning"] : []),
    ...(sqlite ? [] : ["--no-experimental-sqlite"]),
  ];
}
