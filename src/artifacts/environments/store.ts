/**
 * The environments on this machine. Each is a folder named by all that it is made of, and is
 * shared by all services with the same lock, wheels of their own, and interpreter. It is made once under another
 * name and renamed, so that it is there complete or not at all.
 *
 *   <folder>/<digest>/           complete
 *   <folder>/<digest>.*.partial  being made, or left unfinished
 *   <folder>/cache/              the cache of uv, whose files the environments link to
 *
 * A folder from before this process started is trusted only after its files were compared
 * with its list of contents, before the first worker that uses it.
 */
import { hash, randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, rename, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "../../log/log.ts";
import type { LaunchProgram } from "../../pool/launchers.ts";
import { raceAbort } from "../../time/race.ts";
import { Semaphore } from "../../time/semaphore.ts";
import { compilePackages } from "./compile.ts";
import { type Contents, readContents, verifyContents, writeContents } from "./contents.ts";
import {
  EnvironmentError,
  type EnvironmentProgress,
  type EnvironmentSpec,
  type Environments,
  type HeldEnvironment,
  OversizedError,
} from "./environment.ts";
import { freeIn, installPackages, MAX_ENVIRONMENT_FILES, overQuota } from "./install.ts";
import type { PythonInterpreter } from "./interpreters.ts";
import { readLock, writeLock } from "./requirements.ts";
import { runUv } from "./run-uv.ts";

/** Environments that are made at a time: each downloads, unpacks and compiles in parallel. */
const MAX_PARALLEL_INSTALLS = 2;

/** Memory of a compiler, whose deployment may have less: those of `examples/ocr` compile within 96 MiB. */
const MAX_COMPILER_MEMORY_BYTES = 512 * 1024 ** 2;

/** Part of an organization's disk that the cache keeps of packages that could not be installed. */
const MAX_CACHED_PART = 0.01;

const DIGEST = /^[0-9a-f]{64}$/;

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

interface Made {
  readonly folder: string;
  readonly contents: Contents;
  /** Resolves when its files are verified; undefined until somebody asks. */
  verified: Promise<void> | undefined;
}

interface Making {
  readonly made: Promise<Made>;
  /** Whose quota it takes. */
  readonly organizationId: string;
  /** Those who wait for it; it is broken off when none does any more. */
  waiting: number;
  readonly abort: AbortController;
}

export class EnvironmentStore implements Environments {
  readonly #options: EnvironmentStoreOptions;
  readonly #known = new Map<string, Making>();
  /** The organizations of those who hold an environment. */
  readonly #holders = new Map<string, string[]>();
  readonly #installs = new Semaphore(MAX_PARALLEL_INSTALLS);
  #sweeping: Promise<unknown> = Promise.resolve();

  constructor(options: EnvironmentStoreOptions) {
    this.#options = options;
  }

  /** Removes what was left unfinished. */
  async start(): Promise<void> {
    const { folder } = this.#options;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    for (const name of await readdir(folder)) {
      if (name.endsWith(".partial")) {
        await rm(join(folder, name), { recursive: true, force: true });
      }
    }
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
    const organizations = this.#holders.get(digest) ?? [];
    this.#holders.set(digest, [...organizations, organizationId]);
    let isHeld = true;
    const release = (): void => {
      if (isHeld) {
        isHeld = false;
        const all = this.#holders.get(digest) ?? [];
        const others = all.toSpliced(all.indexOf(organizationId), 1);
        if (others.length > 0) {
          this.#holders.set(digest, others);
        } else {
          this.#holders.delete(digest);
        }
      }
    };
    try {
      await this.#sweeping;
      const options = { ...spec, lock, interpreter, onProgress, organizationId, memoryBytes };
      const { folder } = await this.#open(digest, options, signal);
      return {
        python: join(folder, "bin", "python"),
        files: [folder, ...interpreter.files],
        // Long after it is held, and whatever became of the signal.
        verify: () => this.#verify(digest, () => this.#open(digest, options)),
        release,
      };
    } catch (err) {
      release();
      throw err;
    }
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
    const isThere = this.#known.has(whole) || existsSync(join(this.#options.folder, whole));
    return wanted >= MAX_COMPILER_MEMORY_BYTES || isThere
      ? { digest: whole, memoryBytes: MAX_COMPILER_MEMORY_BYTES }
      : { digest: nameOf([...made, wanted]), memoryBytes: wanted };
  }

  /**
   * Removes the environments that nobody has held for a while, and those that were not used for
   * longest while all of them take more disk than one organization may; resolves with their number.
   */
  async sweep({ unusedForMs }: { readonly unusedForMs: number }): Promise<number> {
    await this.#sweeping;
    const removing = this.#sweep(unusedForMs);
    // A `hold` of one of them waits for the sweep, and then makes it again.
    this.#sweeping = removing.catch(() => undefined);
    const removed = await removing;
    if (removed > 0) {
      // It still has their files. No `hold` waits for it, as it waits for installations.
      await this.#cleanCache();
    }
    return removed;
  }

  async #sweep(unusedForMs: number): Promise<number> {
    const { folder, now, maxBytesPerOrganization } = this.#options;
    let [removed, keptBytes] = [0, 0];
    for (const { name, usedMs, bytes } of await this.#unused()) {
      keptBytes += bytes;
      if (this.#holders.get(name)?.length) {
        continue;
      }
      if (now() - usedMs >= unusedForMs || keptBytes > maxBytesPerOrganization) {
        this.#known.delete(name);
        await rm(join(folder, name), { recursive: true, force: true });
        removed += 1;
      }
    }
    return removed;
  }

  /** The environments that nobody holds, the last used one first. */
  async #unused(): Promise<{ name: string; usedMs: number; bytes: number }[]> {
    const { folder } = this.#options;
    const unused = [];
    for (const name of await readdir(folder).catch(() => [])) {
      if (DIGEST.test(name) && !this.#holders.get(name)?.length) {
        const path = join(folder, name);
        const { bytes } = await readContents(path).catch(() => ({ bytes: 0 }));
        const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: 0 }));
        unused.push({ name, usedMs: mtimeMs, bytes });
      }
    }
    return unused.toSorted((a, b) => b.usedMs - a.usedMs);
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

  async #open(digest: string, options: MakeOptions, signal?: AbortSignal): Promise<Made> {
    let making = this.#known.get(digest);
    if (making === undefined) {
      const abort = new AbortController();
      const made = this.#installs.run(
        async () => (await this.#find(digest)) ?? (await this.#make(digest, options, abort.signal)),
      );
      making = { made, waiting: 0, abort, organizationId: options.organizationId };
      this.#known.set(digest, making);
      made.catch(() => this.#forget(digest, made));
    }
    const { made, abort, organizationId } = making;
    making.waiting += 1;
    try {
      return await (signal ? raceAbort(made, signal) : made);
    } catch (err) {
      if (making.waiting === 1) {
        // Nobody waits for it any more; who comes next begins anew.
        abort.abort(err);
        this.#forget(digest, made);
      }
      const isOwn = organizationId === options.organizationId;
      if (isOwn || signal?.aborted === true || !(err instanceof OversizedError) || err.isFinal) {
        throw err;
      }
    } finally {
      making.waiting -= 1;
    }
    // The quota that it went beyond is another organization's.
    this.#forget(digest, made);
    return await this.#open(digest, options, signal);
  }

  #forget(digest: string, made: Promise<Made>): void {
    if (this.#known.get(digest)?.made === made) {
      this.#known.delete(digest);
    }
  }

  /** An environment from before this process started, or of another process. */
  async #find(digest: string): Promise<Made | undefined> {
    const folder = join(this.#options.folder, digest);
    try {
      const contents = await readContents(folder);
      const time = this.#options.now() / 1000;
      await utimes(folder, time, time);
      return { folder, contents, verified: undefined };
    } catch (err) {
      if ((err as NodeJS.ErrnoException).code !== "ENOENT") {
        this.#options.log.warn({ err, digest }, "an environment is damaged: it is made again");
      }
      await rm(folder, { recursive: true, force: true });
      return undefined;
    }
  }

  async #make(digest: string, options: MakeOptions, signal: AbortSignal): Promise<Made> {
    const { folder: home, uv: findUv, env, log, now, launch } = this.#options;
    const { maxFiles = MAX_ENVIRONMENT_FILES, maxBytesPerOrganization } = this.#options;
    const { interpreter, lock, wheels, onProgress, organizationId } = options;
    const beganMs = now();
    const folder = join(home, digest);
    const unfinished = `${folder}.${randomUUID()}.partial`;
    try {
      // Otherwise many that are used for a moment could fill the disk until the next sweep.
      await this.sweep({ unusedForMs: Number.POSITIVE_INFINITY });
      const maxBytes = await this.#room(organizationId);
      onProgress?.(`installing packages for Python ${interpreter.version}`);
      const cacheFolder = join(home, "cache");
      const uv = await findUv(interpreter, signal);
      const { bytes: freeBytes } = await freeIn(home);
      await installPackages({
        ...{
          folder: unfinished,
          broughtFolder: `${folder}.${randomUUID()}.partial`,
          interpreter,
          lock,
          wheels,
          maxBytes,
          maxFiles,
          uv,
          cacheFolder,
          env,
          signal,
        },
      }).catch(async (err) => {
        const left = freeBytes - (await freeIn(home)).bytes;
        if (left > maxBytesPerOrganization * MAX_CACHED_PART || err instanceof OversizedError) {
          // What it has downloaded is of no use, and nobody's quota has it.
          await this.#cleanCache();
        }
        throw err;
      });
      const leftOut = await compilePackages({
        ...{ folder: unfinished, interpreter, launch, signal },
        memoryBytes: options.memoryBytes,
        diskBytes: maxBytes,
        scratchFolder: `${folder}.${randomUUID()}.partial`,
      });
      const [first] = leftOut;
      if (first !== undefined) {
        const { path, reason } = first;
        const modules = leftOut.length;
        log.warn({ digest, path, reason, modules }, "an environment is not compiled as a whole");
        const more = modules === 1 ? "" : ` (and ${modules - 1} more modules)`;
        onProgress?.(
          `${path} is not compiled: ${reason}${more}. Workers that import it compile it each time, within their limits`,
        );
      }
      const contents = await writeContents(unfinished);
      if (contents.bytes > maxBytes) {
        throw overQuota(maxBytes);
      }
      await rename(unfinished, folder).catch(async (err) => {
        // Another process may have been faster.
        await readContents(folder).catch(() => {
          throw err;
        });
      });
      log.info(
        { digest, bytes: contents.bytes, ms: now() - beganMs },
        "an environment for Python was made",
      );
      return { folder, contents, verified: Promise.resolve() };
    } finally {
      await rm(unfinished, { recursive: true, force: true });
    }
  }

  /** The disk space that an organization has left for environments. */
  async #room(organizationId: string): Promise<number> {
    const { maxBytesPerOrganization, folder } = this.#options;
    let used = 0;
    for (const [digest, organizations] of this.#holders) {
      if (organizations.includes(organizationId)) {
        const contents = await readContents(join(folder, digest)).catch(() => undefined);
        used += contents?.bytes ?? 0;
      }
    }
    return Math.max(0, maxBytesPerOrganization - used);
  }

  async #verify(digest: string, made: () => Promise<Made>): Promise<void> {
    const found = await made();
    found.verified ??= this.#installs.run(() => this.#compare(digest, found));
    try {
      await found.verified;
    } catch (cause) {
      await made();
      // A sandbox that has started already has the removed folder mounted.
      throw new Error("its environment was damaged, and has been made again", { cause });
    }
  }

  /** Compares every file with the list. If one is another, removes the environment and rejects. */
  async #compare(digest: string, { folder, contents }: Made): Promise<void> {
    try {
      await verifyContents(folder, contents);
    } catch (err) {
      this.#options.log.warn({ err, digest }, "an environment is damaged: it is made again");
      this.#known.delete(digest);
      await rm(folder, { recursive: true, force: true });
      throw err;
    }
  }
}

interface MakeOptions extends EnvironmentSpec, Pick<EnvironmentProgress, "onProgress"> {
  readonly interpreter: PythonInterpreter;
  readonly organizationId: string;
  readonly memoryBytes: number;
}
