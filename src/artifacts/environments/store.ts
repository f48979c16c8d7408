/**
 * The environments on this machine. Each is a folder named by all that it is made of, and is
 * shared by all services with the same lock, wheels of their own, and interpreter; see
 * `FolderStore`. `<folder>/cache/` is the cache of uv, whose files the environments link to.
 */
import { hash, randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Log } from "../../log/log.ts";
import type { LaunchProgram } from "../../pool/launchers.ts";
import { compilePackages } from "./compile.ts";
import {
  EnvironmentError,
  type EnvironmentProgress,
  type EnvironmentSpec,
  type Environments,
  type HeldEnvironment,
  OversizedError,
} from "./environment.ts";
import { FolderStore } from "./folder-store.ts";
import { freeIn, installPackages, MAX_ENVIRONMENT_FILES } from "./install.ts";
import type { PythonInterpreter } from "./interpreters.ts";
import { readLock, writeLock } from "./requirements.ts";
import { runUv } from "./run-uv.ts";

/** Memory of a compiler, whose deployment may have less: those of `examples/ocr` compile within 96 MiB. */
const MAX_COMPILER_MEMORY_BYTES = 512 * 1024 ** 2;

/** Part of an organization's disk that the cache keeps of packages that could not be installed. */
const MAX_CACHED_PART = 0.01;

export interface EnvironmentStoreOptions {
  /** Created if missing; its real path. Other processes may use it, but not sweep it. */
  readonly folder: string;
  /** Finds the interpreters of this machine. */
  readonly interpreters: () => Promise<readonly PythonInterpreter[]>;
  /** Finds uv when it is first needed. */
  readonly uv: (interpreter: PythonInterpreter, signal?: AbortSignal) => Promise<string>;
  /** Where packages come from; see `runUv`. */
  readonly env: NodeJS.ProcessEnv;
  /** Starts what compiles packages: in the sandbox of the workers, where there is one. */
  readonly launch: LaunchProgram;
  /** Disk space of the environments that one organization uses. */
  readonly maxBytesPerOrganization: number;
  /** Files of an environment. Default: 250,000. */
  readonly maxFiles?: number;
  readonly log: Pick<Log, "info" | "warn">;
  readonly now: () => number;
}

export class EnvironmentStore implements Environments {
  readonly #options: EnvironmentStoreOptions;
  /** The folders of environments; what else is made of a lock may be among them. */
  readonly folders: FolderStore;

  constructor(options: EnvironmentStoreOptions) {
    this.#options = options;
    // Environments have links of their own to the files of the cache.
    this.folders = new FolderStore({ ...options, onRemoved: () => this.#cleanCache() });
  }

  /** Removes what was left unfinished. */
  async start(): Promise<void> {
    await this.folders.start();
  }

  async hold(
    spec: EnvironmentSpec,
    { signal, onProgress }: EnvironmentProgress = {},
  ): Promise<HeldEnvironment> {
    signal?.throwIfAborted();
    const interpreter = await this.#interpreterFor(spec.python);
    const lock = writeLock(readLock(spec.lock));
    const { digest, memoryBytes } = this.#nameOf(spec, lock, interpreter);
    const { organizationId = "" } = spec;
    const options = { ...spec, lock, interpreter, onProgress, memoryBytes };
    const { folder, verify, release } = await this.folders.hold(
      digest,
      {
        what: "an environment for Python",
        organizationId,
        make: (unfinished, limits) => this.#make(unfinished, { ...options, ...limits }),
      },
      signal,
    );
    return {
      python: join(folder, "bin", "python"),
      files: [folder, ...interpreter.files],
      verify,
      release,
    };
  }

  /**
   * Its name, and the memory that compiling it takes at most. With little of that, modules may be
   * left out, so such an environment has a name of its own: who deploys with little memory would
   * decide for all others. It has no need for one where the whole environment is there.
   */
  #nameOf(
    { wheels = [], memoryBytes: wanted = MAX_COMPILER_MEMORY_BYTES }: EnvironmentSpec,
    lock: string,
    { version, path }: PythonInterpreter,
  ): { readonly digest: string; readonly memoryBytes: number } {
    const brought = wheels.map(({ name, sha256 }) => [name, ...sha256]).toSorted();
    const made = [lock, version, path, brought];
    const nameOf = (of: readonly unknown[]) => hash("sha256", JSON.stringify(of), "hex");
    const whole = nameOf(made);
    const isThere = this.folders.knows(whole) || existsSync(join(this.#options.folder, whole));
    return wanted >= MAX_COMPILER_MEMORY_BYTES || isThere
      ? { digest: whole, memoryBytes: MAX_COMPILER_MEMORY_BYTES }
      : { digest: nameOf([...made, wanted]), memoryBytes: wanted };
  }

  /** Removes what is unused, as `FolderStore.sweep` does; resolves with the number of folders. */
  async sweep(options: { readonly unusedForMs: number }): Promise<number> {
    return this.folders.sweep(options);
  }

  /** Removes all that uv keeps for later; environments have links of their own to its files. */
  async #cleanCache(): Promise<void> {
    const { folder, uv, env, interpreters, log } = this.#options;
    const [interpreter] = await interpreters();
    if (interpreter !== undefined) {
      const args = ["cache", "clean", "--quiet"];
      const cacheFolder = join(folder, "cache");
      await runUv({ uv: await uv(interpreter), args, cacheFolder, env }).catch((err) =>
        log.warn({ err }, "the cache of packages could not be cleaned"),
      );
    }
  }

  async #interpreterFor(version: string): Promise<PythonInterpreter> {
    const interpreters = await this.#options.interpreters();
    const found = interpreters.find((each) => each.version === version);
    if (found === undefined) {
      const there = interpreters.map((each) => `${each.version} (${each.path})`).join(", ");
      throw new EnvironmentError(
        "ENVIRONMENT_UNAVAILABLE",
        `it needs Python ${version}, and this machine has ${there || "no Python"}: deploy it for one of these (--python), or ask the operator to install it and to name it (--python ${version}=/usr/bin/python${version})`,
      );
    }
    return found;
  }

  async #make(folder: string, options: MakeOptions): Promise<void> {
    const { folder: home, uv: findUv, env, log, launch } = this.#options;
    const { maxFiles = MAX_ENVIRONMENT_FILES, maxBytesPerOrganization } = this.#options;
    const { interpreter, lock, wheels, onProgress, maxBytes, signal } = options;
    onProgress?.(`installing packages for Python ${interpreter.version}`);
    const cacheFolder = join(home, "cache");
    const uv = await findUv(interpreter, signal);
    const { bytes: freeBytes } = await freeIn(home);
    const besides = (): string => join(home, `${randomUUID()}.partial`);
    await installPackages({
      ...{ folder, broughtFolder: besides(), interpreter, lock, wheels, maxBytes, maxFiles },
      ...{ uv, cacheFolder, env, signal },
    }).catch(async (err) => {
      const left = freeBytes - (await freeIn(home)).bytes;
      if (left > maxBytesPerOrganization * MAX_CACHED_PART || err instanceof OversizedError) {
        // What it has downloaded is of no use, and nobody's quota has it.
        await this.#cleanCache();
      }
      throw err;
    });
    const leftOut = await compilePackages({
      ...{ folder, interpreter, launch, signal },
      memoryBytes: options.memoryBytes,
      diskBytes: maxBytes,
      scratchFolder: besides(),
    });
    const [first] = leftOut;
    if (first !== undefined) {
      const { path, reason } = first;
      const modules = leftOut.length;
      log.warn({ path, reason, modules }, "an environment is not compiled as a whole");
      const more = modules === 1 ? "" : ` (and ${modules - 1} more modules)`;
      onProgress?.(
        `${path} is not compiled: ${reason}${more}. Workers that import it compile it each time, within their limits`,
      );
    }
  }
}

interface MakeOptions extends EnvironmentSpec, Pick<EnvironmentProgress, "onProgress"> {
  readonly interpreter: PythonInterpreter;
  readonly memoryBytes: number;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}
