/** Downloads the wheels of a lock, so that a service can be deployed where no index is reached. */
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { PythonInterpreter } from "./interpreters.ts";
import { runUv, type UvRun } from "./run-uv.ts";
import { otherIndexes, packageIndex } from "./uv.ts";

/** The downloader: uv itself has no command for it. */
const PIP = "pip==26.1.2";

export interface DownloadOptions extends Omit<UvRun, "args" | "cwd"> {
  readonly lock: string;
  /** The wheels are those for it, and for this machine. */
  readonly interpreter: PythonInterpreter;
  /** Created if missing. */
  readonly folder: string;
}

/** The paths of the wheels. Rejects with an `EnvironmentError`. */
export async function downloadWheels(options: DownloadOptions): Promise<readonly string[]> {
  const { lock, interpreter, folder, ...run } = options;
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
    },
    args: [
      ...["tool", "run", "--no-config", "--quiet", "--python", interpreter.path, "--from", PIP],
      ...["pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"],
      ...["--require-hashes", "--only-binary", ":all:"],
      ...["--dest", wheels, "--requirement", requirements],
    ],
  });
  const names = await readdir(wheels);
  return names.toSorted().map((name) => join(wheels, name));
}
