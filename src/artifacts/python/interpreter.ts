/** Finds the interpreter of a service in Python, and checks that it can host one. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { ServiceFileError } from "../bundle.ts";

const run = promisify(execFile);

/** The oldest version that can host, as `clients/python/pyproject.toml` says. */
const MIN_VERSION = [3, 10] as const;

/** A cold start of an interpreter on a slow disk takes a few seconds. */
const CHECK_TIMEOUT_MS = 30_000;

const CHECK = `
import sys
try:
    import pydantic
    found = pydantic.VERSION
except ImportError:
    found = ""
print("%d %d %s" % (sys.version_info[0], sys.version_info[1], found))
`;

export interface PythonOptions {
  /** The interpreter that was asked for. */
  readonly named: string | undefined;
  /** The folder of a virtual environment to look into. */
  readonly activeEnvironment: string | undefined;
  /** The variables of the interpreter. */
  readonly env: { readonly [name: string]: string };
}

/**
 * The path of the interpreter to use: the one that was named, that of the active virtual
 * environment, the one in `.venv` beside the service, or `python3`. Rejects with a
 * `ServiceFileError` for one that is not there, too old, or lacks pydantic.
 */
export async function findInterpreter(folder: string, options: PythonOptions): Promise<string> {
  const { named } = options;
  const interpreter = named ?? nearestInterpreter(folder, options);
  const { major, minor, pydantic } = await check(interpreter, options);
  const [minMajor, minMinor] = MIN_VERSION;
  if (major < minMajor || (major === minMajor && minor < minMinor)) {
    throw new ServiceFileError(
      `${interpreter} is Python ${major}.${minor}; services need ${minMajor}.${minMinor} or newer: name another one by --python PATH`,
    );
  }
  if (pydantic === "" || Number.parseInt(pydantic, 10) < 2) {
    const has = pydantic === "" ? "has no pydantic" : `has pydantic ${pydantic}`;
    throw new ServiceFileError(
      `${interpreter} ${has}, and services need version 2: run ${interpreter} -m pip install "pydantic>=2", or name the interpreter of the service's environment by --python PATH`,
    );
  }
  return interpreter;
}

/** The interpreter of the active environment, of `.venv` in the folder, or `python3`. */
export function nearestInterpreter(
  folder: string,
  { activeEnvironment: active }: Pick<PythonOptions, "activeEnvironment">,
): string {
  const environments = [...(active ? [active] : []), join(folder, ".venv")];
  const found = environments
    .map((path) => join(path, "bin", "python"))
    .find((path) => existsSync(path));
  return found ?? "python3";
}

async function check(interpreter: string, { named, env }: PythonOptions) {
  let printed: string;
  try {
    const { stdout } = await run(interpreter, ["-c", CHECK], { env, timeout: CHECK_TIMEOUT_MS });
    printed = stdout;
  } catch (err) {
    const { code } = err as NodeJS.ErrnoException;
    const problem =
      code !== "ENOENT" && code !== "EACCES"
        ? `${interpreter} does not run as Python`
        : named === undefined
          ? "there is no python3 on the PATH: install Python 3.10 or newer"
          : `--python ${named} is not there or cannot be run`;
    const remedy = named === undefined ? ", or name one by --python PATH" : ": name an interpreter";
    throw new ServiceFileError(problem + remedy, { cause: err });
  }
  const [major = 0, minor = 0, pydantic = ""] = printed.trim().split(" ");
  return { major: Number(major), minor: Number(minor), pydantic };
}
