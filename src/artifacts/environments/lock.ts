/**
 * Locks the packages of a service where it is built: every release with the digests of
 * its wheels, for all platforms. The first of these files says what is needed:
 *
 * 1. `uv.lock`: its releases;
 * 2. `requirements.txt` with hashes: as it is, because it is a lock;
 * 3. `pyproject.toml`: its dependencies, with the overrides of `[tool.uv]`;
 * 4. `requirements.txt`;
 * 5. `bentofile.yaml` of BentoML: its `python.packages` or `python.requirements_txt`;
 * 6. without any: nothing but pydantic, which every service needs.
 */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "yaml";
import { EnvironmentError } from "./environment.ts";
import type { PythonInterpreter } from "./interpreters.ts";
import { isLocked, readLock, writeLock } from "./requirements.ts";
import { runUv, type UvRun } from "./run-uv.ts";

export interface PythonLock {
  /** Requirements with hashes, in one form: equal for equal releases. */
  readonly text: string;
  /** The file that says what is needed, for messages. */
  readonly source: string;
}

export interface LockOptions extends Omit<UvRun, "args" | "cwd"> {
  /** The folder of the service. */
  readonly folder: string;
  /** Its version of Python is locked for. */
  readonly interpreter: Pick<PythonInterpreter, "path" | "version">;
}

/** The host of services needs it; its first version with what the SDK uses. */
const NEEDED = "pydantic>=2";
/** The node brings its own. */
const OWN_PACKAGE = "tessera-platform";

/** Rejects with an `EnvironmentError` that says what cannot be locked, and why. */
export async function lockPackages(options: LockOptions): Promise<PythonLock> {
  const { folder } = options;
  const read = (name: string): Promise<string | undefined> =>
    readFile(join(folder, name), "utf8").catch(() => undefined);
  const requirements = await read("requirements.txt");
  if ((await read("uv.lock")) !== undefined) {
    return finished(await exportLock(options), "uv.lock");
  }
  if (requirements !== undefined && isLocked(requirements)) {
    return finished(requirements, "requirements.txt");
  }
  if (/^\s*\[project\]/m.test((await read("pyproject.toml")) ?? "")) {
    return finished(await compile("pyproject.toml", options), "pyproject.toml");
  }
  if (requirements !== undefined) {
    return finished(await compile("requirements.txt", options), "requirements.txt");
  }
  const bentofile = await read("bentofile.yaml");
  if (bentofile !== undefined) {
    return finished(await compileBentofile(bentofile, options), "bentofile.yaml");
  }
  return finished(await compile(undefined, options), "no file");
}

function finished(text: string, source: string): PythonLock {
  const packages = readLock(text).filter(({ name }) => name !== OWN_PACKAGE);
  if (!packages.some(({ name }) => name === "pydantic")) {
    throw new EnvironmentError(
      "LOCK_INVALID",
      `${source} lacks pydantic, which services need: add ${NEEDED} and lock again`,
    );
  }
  return { text: writeLock(packages), source };
}

function exportLock({ folder, interpreter, ...run }: LockOptions): Promise<string> {
  const python = ["--python", interpreter.path];
  const args = ["export", ...python, "--frozen", "--no-dev", "--no-emit-project", "--no-header"];
  return runUv({ ...run, args: [...args, "--no-annotate", "--quiet"], cwd: folder });
}

/** Resolves the requirements of a file in the folder of the service, and pydantic. */
async function compile(file: string | undefined, options: LockOptions): Promise<string> {
  const { folder, interpreter, ...run } = options;
  const temporary = await mkdtemp(join(tmpdir(), "tessera-lock-"));
  try {
    const needed = join(temporary, "needed.txt");
    await writeFile(needed, `${NEEDED}\n`);
    const excludes = join(temporary, "excludes.txt");
    await writeFile(excludes, `${OWN_PACKAGE}\n`);
    return await runUv({
      ...run,
      args: [
        ...["pip", "compile", needed, ...(file === undefined ? [] : [file])],
        ...["--excludes", excludes, "--universal"],
        ...["--python", interpreter.path, "--python-version", interpreter.version],
        ...["--generate-hashes", "--only-binary", ":all:", "--no-header", "--no-annotate"],
        "--quiet",
      ],
      cwd: folder,
    });
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

async function compileBentofile(text: string, options: LockOptions): Promise<string> {
  const { python } = (parse(text) ?? {}) as {
    python?: { packages?: unknown; requirements_txt?: unknown };
  };
  const { packages = [], requirements_txt: named } = python ?? {};
  if (typeof named === "string") {
    return compile(named, options);
  }
  if (!Array.isArray(packages) || !packages.every((each) => typeof each === "string")) {
    throw new EnvironmentError(
      "LOCK_INVALID",
      "python.packages in bentofile.yaml is no list of requirements, such as - numpy>=2",
    );
  }
  const temporary = await mkdtemp(join(tmpdir(), "tessera-lock-"));
  try {
    const file = join(temporary, "requirements.txt");
    await writeFile(file, packages.map((each) => `${each}\n`).join(""));
    return await compile(file, options);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}
