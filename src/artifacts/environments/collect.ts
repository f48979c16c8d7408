/**
 * Collects the wheels of a lock, so that a service can be deployed where no index is reached.
 * A package without one can be built from its source here, if that is asked for: building runs
 * code of the package. The lock then names the wheel instead of the source.
 */
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { indexFiles } from "../content.ts";
import { EnvironmentError } from "./environment.ts";
import type { PythonInterpreter } from "./interpreters.ts";
import { packageName, readLock, writeLock } from "./requirements.ts";
import { runUv, type UvRun } from "./run-uv.ts";
import { otherIndexes, packageIndex } from "./uv.ts";

/** It downloads and builds wheels: uv itself has no command for it. */
const PIP = "pip==26.1.2";

/** Builds are reproducible where their tools follow this (reproducible-builds.org): 1980, the first year of zip. */
const SOURCE_DATE_EPOCH = "315532800";

interface CollectOptions extends Omit<UvRun, "args" | "cwd"> {
  readonly lock: string;
  /** The wheels are those for it, and for this machine. */
  readonly interpreter: PythonInterpreter;
  /** Created if missing. */
  readonly folder: string;
  /** Packages that are built from their sources, as an index spells them. */
  readonly fromSource: readonly string[];
}

interface CollectedWheels {
  /** The paths of the wheels. */
  readonly paths: readonly string[];
  /** The lock of exactly these. */
  readonly lock: string;
}

/** Rejects with an `EnvironmentError`. */
export async function collectWheels(options: CollectOptions): Promise<CollectedWheels> {
  const { lock, interpreter, folder, fromSource, ...run } = options;
  const wheels = join(folder, "wheels");
  await mkdir(wheels, { recursive: true });
  const requirements = join(folder, "lock.txt");
  await writeFile(requirements, lock);
  await runUv({
    ...run,
    // Not as arguments, which other users of the machine see: addresses may have passwords.
    variables: {
      PIP_INDEX_URL: packageIndex(run.env),
      PIP_EXTRA_INDEX_URL: otherIndexes(run.env).join(" "),
      SOURCE_DATE_EPOCH,
    },
    args: [
      ...["tool", "run", "--no-config", "--quiet", "--python", interpreter.path, "--from", PIP],
      ...["pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"],
      ...["--require-hashes", "--only-binary", ":all:"],
      ...fromSource.flatMap((name) => ["--no-binary", name]),
      ...["--wheel-dir", wheels, "--requirement", requirements],
    ],
  });
  const names = await readdir(wheels);
  const paths = names.toSorted().map((name) => join(wheels, name));
  return { paths, lock: await lockOfBuilt(lock, { paths, fromSource }) };
}

/** The lock, with the digests of the wheels that were built here. */
async function lockOfBuilt(
  lock: string,
  { paths, fromSource }: { paths: readonly string[]; fromSource: readonly string[] },
): Promise<string> {
  const packages = readLock(lock);
  const missing = fromSource.filter((name) => !packages.some((each) => each.name === name));
  if (missing.length > 0) {
    throw new EnvironmentError(
      "LOCK_INVALID",
      `${missing.join(", ")} is to be built from source, and is not among the packages of the service`,
    );
  }
  return writeLock(
    await Promise.all(
      packages.map(async ({ name, line }) => {
        // PEP 427: the name comes first in the name of a wheel.
        const wheel = paths.find(
          (path) => packageName(basename(path).split("-", 1)[0] ?? "") === name,
        );
        if (!fromSource.includes(name) || wheel === undefined) {
          return { name, line };
        }
        const [built] = await indexFiles(new Map([[name, wheel]]));
        const released = line.replace(/(?: --hash=\S+)+$/, "");
        return { name, line: `${released} --hash=sha256:${built?.sha256}` };
      }),
    ),
  );
}
