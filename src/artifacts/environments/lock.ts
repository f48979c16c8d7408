/**
 * Locks the packages of a service where it is built: every release with the digests of
 * its wheels, for one version of Python on Linux and macOS. The first of these says what is
 * needed:
 *
 * 1. `uv.lock`: its releases;
 * 2. `requirements.txt` with hashes: as it is, because it is a lock;
 * 3. `pyproject.toml`: its dependencies, with the overrides of `[tool.uv]`;
 * 4. `requirements.txt`;
 * 5. the `Image` of a service of BentoML: its `python_packages` and files;
 * 6. `bentofile.yaml` of BentoML: its `python.packages` and `python.requirements_txt`;
 * 7. without any: nothing but pydantic, which every service needs.
 */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { imageNeeds, type Needs, readBentofile } from "./bentoml.ts";
import { EnvironmentError } from "./environment.ts";
import type { PythonInterpreter } from "./interpreters.ts";
import { isLocked, readLock, writeLock } from "./requirements.ts";
import { runUv, type UvRun } from "./run-uv.ts";

interface PythonLock {
  /** Requirements with hashes, in one form: equal for equal releases. */
  readonly text: string;
  /** The file that says what is needed, for messages. */
  readonly source: string;
}

interface LockOptions extends Omit<UvRun, "args" | "cwd"> {
  /** The folder of the service. */
  readonly folder: string;
  /** The path of its module from there. */
  readonly entry: string;
  /** Packages that are built from their sources, as an index spells them; all others have wheels. */
  readonly fromSource: readonly string[];
  /** Its version of Python is locked for. */
  readonly interpreter: Pick<PythonInterpreter, "path" | "version">;
}

/** The host of services needs it; its first version with what the SDK uses. */
const NEEDED = "pydantic>=2";
/** The node brings its own. */
const OWN_PACKAGE = "tessera-platform";

/** Rejects with an `EnvironmentError` that says what cannot be locked, and why. */
export async function lockPackages(options: LockOptions): Promise<PythonLock> {
  const { folder, entry, interpreter } = options;
  const read = (name: string): Promise<string | undefined> =>
    readFile(join(folder, name), "utf8").catch(() => undefined);
  const resolved = async (needs: Needs, source: string): Promise<PythonLock> =>
    finished(await compile(needs, (await read("pyproject.toml")) ?? "", options), source);
  const requirements = await read("requirements.txt");
  if ((await read("uv.lock")) !== undefined) {
    return finished(await exportLock(options), "uv.lock");
  }
  if (requirements !== undefined && isLocked(requirements)) {
    return finished(requirements, "requirements.txt");
  }
  if (/^\s*\[project\]/m.test((await read("pyproject.toml")) ?? "")) {
    return resolved({ packages: [], files: ["pyproject.toml"] }, "pyproject.toml");
  }
  if (requirements !== undefined) {
    return resolved({ packages: [], files: ["requirements.txt"] }, "requirements.txt");
  }
  const image = await imageNeeds(join(folder, entry), interpreter);
  if (image !== undefined) {
    return resolved(image, `the image in ${entry}`);
  }
  const bentofile = await read("bentofile.yaml");
  if (bentofile !== undefined) {
    return resolved(readBentofile(bentofile), "bentofile.yaml");
  }
  return resolved({ packages: [], files: [] }, "no file");
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

function exportLock({ folder, interpreter, fromSource: _, ...run }: LockOptions): Promise<string> {
  const python = ["--python", interpreter.path];
  const args = ["export", ...python, "--frozen", "--no-dev", "--no-emit-project", "--no-header"];
  return runUv({ ...run, args: [...args, "--no-annotate", "--quiet"], cwd: folder });
}

/** Resolves what is needed, and pydantic, with the settings of the project. */
async function compile(
  { packages, files }: Needs,
  project: string,
  { folder, interpreter, fromSource, ...run }: LockOptions,
): Promise<string> {
  const temporary = await mkdtemp(join(tmpdir(), "tessera-lock-"));
  try {
    await writeFile(join(temporary, "pyproject.toml"), withEnvironments(project, interpreter));
    await writeFile(join(temporary, "needed.txt"), `${[NEEDED, ...packages].join("\n")}\n`);
    await writeFile(join(temporary, "excludes.txt"), `${OWN_PACKAGE}\n`);
    const given = files.map((file) =>
      // The copy has the same dependencies, and the settings beside them.
      file === "pyproject.toml" ? file : join(folder, file),
    );
    return await runUv({
      ...run,
      args: [
        ...["pip", "compile", "needed.txt", ...given, "--excludes", "excludes.txt", "--universal"],
        ...["--python", interpreter.path, "--python-version", interpreter.version],
        ...["--generate-hashes", "--only-binary", ":all:", "--no-header", "--no-annotate"],
        ...fromSource.flatMap((name) => ["--no-binary", name]),
        "--quiet",
      ],
      cwd: temporary,
    });
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

/**
 * The project's file, with the environments that its packages are resolved for, unless it says
 * which: otherwise uv resolves for every later version of Python, and for Windows. It prefers
 * releases that have a wheel for this machine, where the service is imported next.
 */
function withEnvironments(
  project: string,
  { version }: Pick<PythonInterpreter, "version">,
): string {
  if (/^\s*environments\s*=/m.test(project)) {
    return project;
  }
  const python = `python_version == '${version}'`;
  const own = `sys_platform == '${process.platform}' and platform_machine == '${machine()}'`;
  const settings = [
    `environments = ["${python} and sys_platform == 'linux'", "${python} and sys_platform == 'darwin'"]`,
    ...(/^\s*required-environments\s*=/m.test(project)
      ? []
      : [`required-environments = ["${python} and ${own}"]`]),
  ].join("\n");
  const header = /^[ \t]*\[tool\.uv\][^\n]*$/m;
  return header.test(project)
    ? project.replace(header, (line) => `${line}\n${settings}`)
    : `${project}\n[tool.uv]\n${settings}\n`;
}

/** The machine as Python names it. */
function machine(): string {
  const arm = process.platform === "darwin" ? "arm64" : "aarch64";
  return process.arch === "arm64" ? arm : "x86_64";
}
