/**
 * Makes an environment in a folder: an interpreter with the packages of a lock.
 *
 * Nothing of the packages runs here, nor does the interpreter of the environment, which would
 * run it: what a wheel brings as a `.pth` file, as `sitecustomize.py` or as `pyvenv.cfg` is read
 * before any program. uv asks the interpreter of the machine only, and installs below a prefix.
 */
import { createWriteStream, type Dirent } from "node:fs";
import { lstat, mkdir, opendir, rm, statfs, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { packagesIn } from "./compile.ts";
import { EnvironmentError, OversizedError, type Wheel } from "./environment.ts";
import type { PythonInterpreter } from "./interpreters.ts";
import { runUv, type UvRun } from "./run-uv.ts";
import { checkTags } from "./tags.ts";

/** How often the disk is looked at while packages are installed. */
const DISK_CHECK_INTERVAL_MS = 500;
/** What an installation leaves free on the disk: databases and logs are often on it, too. */
const MIN_FREE_DISK_BYTES = 512 * 1024 ** 2;
/** What the disk may lose while an installation runs, in shares of what that may take. */
const MAX_LOST_SHARES = 4;
/** What the disk may lose at least while an installation runs: others write there, too. */
const MIN_LOST_BYTES = 1024 ** 3;
/** Files that may come at least on the disk while an installation runs. */
const MIN_LOST_FILES = 100_000;

/** The unit of `blocks` of a file. */
const BLOCK_BYTES = 512;

/** Memory of uv while it installs: 22 packages of machine learning take 100 MB of it. */
const MAX_INSTALL_MEMORY_BYTES = 1024 ** 3;
/** Files of the packages of an environment: those of machine learning have some ten thousand. */
export const MAX_ENVIRONMENT_FILES = 250_000;

/** A wheel's file name (PEP 427), which is a name and no path. */
const WHEEL_NAME = /^[A-Za-z0-9][A-Za-z0-9._+!-]{0,250}\.whl$/;

interface InstallOptions extends Omit<UvRun, "args" | "cwd"> {
  readonly folder: string;
  readonly interpreter: PythonInterpreter;
  /** A folder for the lock and the wheels; it is made, and removed. */
  readonly broughtFolder: string;
  /** The text of the lock, as `writeLock` writes it. */
  readonly lock: string;
  /** Nothing else is asked for packages. Default: the index. */
  readonly wheels?: readonly Wheel[] | undefined;
  /** Disk space that it may take. */
  readonly maxBytes: number;
  /** Files that it may have. */
  readonly maxFiles: number;
}

/** Rejects with an `EnvironmentError`; what is in the folder is then of no use. */
export async function installPackages(options: InstallOptions): Promise<void> {
  const { folder, broughtFolder, interpreter, lock, wheels, ...run } = options;
  // `--relocatable`: it is renamed when it is complete.
  const venv = ["venv", "--relocatable", "--no-project", "--no-config", "--quiet"];
  await runUv({ ...run, args: [...venv, "--python", interpreter.path, folder] });
  // Not in the environment, in which packages could have files of the same names.
  await mkdir(broughtFolder);
  try {
    const requirements = join(broughtFolder, "lock.txt");
    await writeFile(requirements, lock);
    const brought = join(broughtFolder, "wheels");
    if (wheels !== undefined) {
      await writeWheels(wheels, brought);
    }
    await withinDisk(options, (signal) =>
      runUv({
        ...run,
        signal,
        maxMemoryBytes: MAX_INSTALL_MEMORY_BYTES,
        args: [
          ...["pip", "sync", "--python", interpreter.path, "--prefix", folder, "--require-hashes"],
          ...["--only-binary", ":all:", "--link-mode", "hardlink", "--no-compile-bytecode"],
          ...["--no-config", "--quiet"],
          ...(wheels === undefined ? [] : ["--no-index", "--find-links", brought]),
          requirements,
        ],
      }),
    );
    await countFiles(options);
    await checkTags(packagesIn(folder, interpreter), wheels ?? []);
  } finally {
    await rm(broughtFolder, { recursive: true, force: true });
  }
}

async function writeWheels(wheels: readonly Wheel[], folder: string): Promise<void> {
  await mkdir(folder);
  for (const { name, open } of wheels) {
    if (!WHEEL_NAME.test(name)) {
      throw new EnvironmentError("LOCK_INVALID", `${JSON.stringify(name)} is no name of a wheel`, {
        isFinal: true,
      });
    }
    await pipeline(open(), createWriteStream(join(folder, name), { flags: "wx" }));
  }
}

/** Rejects for more files than an environment may have, before anything lists them all. */
async function countFiles({ folder, maxFiles }: InstallOptions): Promise<void> {
  let count = 0;
  for await (const _ of await opendir(folder, { recursive: true })) {
    count += 1;
    if (count > maxFiles) {
      throw tooManyFiles(maxFiles);
    }
  }
}

function tooManyFiles(maxFiles: number): OversizedError {
  return new OversizedError(`its packages have more than ${maxFiles} files: depend on fewer`, {
    isFinal: true,
  });
}

/**
 * Breaks an installation off that takes more of the disk than it may, or nearly all of it. The free
 * space of the disk is cheap to ask for, but others write there as well: what it has lost makes the
 * folder be measured, and only some times as much, such as by what is still in a cache, is too much
 * by itself.
 */
export async function withinDisk<T>(
  limits: Pick<InstallOptions, "folder" | "maxBytes" | "maxFiles" | "signal">,
  install: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { folder, maxBytes, maxFiles, signal } = limits;
  const before = await freeIn(dirname(folder));
  const full = new AbortController();
  const check = async (): Promise<void> => {
    const { bytes, files } = await freeIn(dirname(folder));
    if (bytes < MIN_FREE_DISK_BYTES) {
      full.abort(new OversizedError("the disk is nearly full: no packages are installed"));
      return;
    }
    const lost = { bytes: before.bytes - bytes, files: before.files - files };
    if (lost.bytes > maxBytes || lost.files > maxFiles) {
      const own = await sizeOf(folder, limits);
      const lostBytes = Math.max(maxBytes * MAX_LOST_SHARES, MIN_LOST_BYTES);
      const lostFiles = Math.max(maxFiles * MAX_LOST_SHARES, MIN_LOST_FILES);
      if (own.bytes > maxBytes || lost.bytes > lostBytes) {
        full.abort(overQuota(maxBytes));
      } else if (own.files > maxFiles || lost.files > lostFiles) {
        full.abort(tooManyFiles(maxFiles));
      }
    }
  };
  await check();
  let isChecking = false;
  const timer = setInterval(async () => {
    if (!isChecking) {
      isChecking = true;
      await check().catch(() => {});
      isChecking = false;
    }
  }, DISK_CHECK_INTERVAL_MS);
  try {
    const done = await install(
      signal === undefined ? full.signal : AbortSignal.any([signal, full.signal]),
    );
    await check();
    full.signal.throwIfAborted();
    return done;
  } finally {
    clearInterval(timer);
  }
}

/** What a folder takes; it is not looked at further once that is too much. */
async function sizeOf(
  folder: string,
  { maxBytes, maxFiles }: Pick<InstallOptions, "maxBytes" | "maxFiles">,
): Promise<{ readonly bytes: number; readonly files: number }> {
  const sum = { bytes: 0, files: 0 };
  const folders = [folder];
  for (let next = folders.pop(); next !== undefined; next = folders.pop()) {
    // What goes while it is looked at takes nothing.
    for await (const { name } of await opendir(next).catch(() => [] as Dirent[])) {
      const path = join(next, name);
      const found = await lstat(path).catch(() => undefined);
      sum.bytes += (found?.blocks ?? 0) * BLOCK_BYTES;
      sum.files += 1;
      if (sum.bytes > maxBytes || sum.files > maxFiles) {
        return sum;
      }
      if (found?.isDirectory()) {
        folders.push(path);
      }
    }
  }
  return sum;
}

/** The error of packages that take more than they may. */
export function overQuota(maxBytes: number): OversizedError {
  const limit = Math.round(maxBytes / 1024 ** 2);
  return new OversizedError(
    `its packages, or its image, take more than the ${limit} MiB of disk that its organization has left for them: have fewer, or ask the operator for more (tessera start --max-environments-per-organization)`,
  );
}

/** What is free on the disk that a folder is on; some file systems do not tell of files. */
export async function freeIn(
  folder: string,
): Promise<{ readonly bytes: number; readonly files: number }> {
  const { bavail, bsize, ffree } = await statfs(folder);
  return { bytes: bavail * bsize, files: ffree };
}
