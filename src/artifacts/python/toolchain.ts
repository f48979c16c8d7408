/** What a build in Python is made with: an interpreter, uv, and the environments of builds. */
import { mkdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import { programLauncher } from "../../pool/launchers.ts";
import type { Sandbox } from "../../pool/sandbox/sandbox.ts";
import type { PythonBuildOptions } from "../build-options.ts";
import { ServiceFileError } from "../bundle.ts";
import { openInterpreter, type PythonInterpreter } from "../environments/interpreters.ts";
import type { UvRun } from "../environments/run-uv.ts";
import { EnvironmentStore } from "../environments/store.ts";
import { findUv } from "../environments/uv.ts";
import { currentPlatform } from "../platform.ts";
import { nearestInterpreter } from "./interpreter.ts";

/** Disk space of the environments of builds. */
const MAX_BUILD_ENVIRONMENTS_BYTES = 50 * 1024 ** 3;

export interface Toolchain {
  readonly interpreter: PythonInterpreter;
  readonly run: Omit<UvRun, "args" | "cwd">;
  readonly environments: EnvironmentStore;
  /** The real path of the cache. */
  readonly folder: string;
}

/** Rejects with a `ServiceFileError` or an `EnvironmentError`. */
export async function openToolchain(
  root: string,
  options: PythonBuildOptions & { readonly sandbox: Sandbox },
  signal: AbortSignal | undefined,
): Promise<Toolchain> {
  const { searchPath, env, uv: named, sandbox } = options;
  const program = options.named ?? nearestInterpreter(root, options);
  const interpreter = await openInterpreter(program, searchPath);
  if (interpreter === undefined) {
    throw new ServiceFileError(
      `${program} is not there, or does not run as Python: install Python 3.10 or newer, or name an interpreter by --python PATH`,
    );
  }
  const cache = join(options.cacheFolder, "python");
  await mkdir(cache, { recursive: true });
  const folder = await realpath(cache);
  const uv = await findUv({ named, folder, platform: currentPlatform(), interpreter, env, signal });
  const environments = new EnvironmentStore({
    folder,
    interpreters: async () => [interpreter],
    uv: async () => uv,
    env,
    launch: programLauncher(sandbox),
    maxBytesPerOrganization: MAX_BUILD_ENVIRONMENTS_BYTES,
    log: { info() {}, warn() {} },
    now: Date.now,
  });
  const run = { uv, cacheFolder: join(folder, "cache"), env, signal };
  return { interpreter, run, environments, folder };
}
