/**
 * The interpreters of this machine that environments are made of, and how they run programs of
 * ours. They are the operator's. The interpreter of an environment is never run here: what it
 * reads before its program, such as `.pth` files, comes from the person who deploys.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";
import { promisify } from "node:util";

/** Minor version of Python 3 that can host services, as `clients/python/pyproject.toml` says. */
const MIN_MINOR_VERSION = 10;
/** Minor version of Python 3 that is looked for on the path; a later one is named. */
const MAX_MINOR_VERSION = 15;

/** A cold start of an interpreter on a slow disk takes a few seconds. */
const PROBE_TIMEOUT_MS = 30_000;

export interface PythonInterpreter {
  /** Its minor version, such as `3.11`. */
  readonly version: string;
  /** The absolute path of its program, outside virtual environments. */
  readonly path: string;
  /** Its installation: the program, its library and the standard library, by absolute paths. */
  readonly files: readonly string[];
  /** What it calls its compiled modules after, such as `cpython-311`. */
  readonly cacheTag: string;
}

interface InterpreterRun {
  /** Default: as long as it takes. */
  readonly timeoutMs?: number;
  /** Default: 1 MiB, of what it prints. */
  readonly maxPrintedBytes?: number;
  /** Its whole environment. Default: empty. */
  readonly env?: NodeJS.ProcessEnv;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs a program of ours in an interpreter of this machine, and returns what it prints. Neither
 * the user's variables nor `site`, with the `.pth` files of its packages, take part (`-I -S`).
 */
export async function runInterpreter(
  program: string,
  args: readonly string[],
  { timeoutMs = 0, maxPrintedBytes = 1024 ** 2, env = {}, signal }: InterpreterRun = {},
): Promise<string> {
  const options = {
    timeout: timeoutMs,
    maxBuffer: maxPrintedBytes,
    env,
    ...(signal && { signal }),
  };
  const { stdout } = await promisify(execFile)(program, ["-I", "-S", ...args], options);
  return stdout;
}

/** Prints, as JSON, where an interpreter has its installation. */
const PROBE = `
import json, os, sys, sysconfig
program = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
paths = sysconfig.get_paths()
library = sysconfig.get_config_var("INSTSONAME") or ""
shared = os.path.join(sysconfig.get_config_var("LIBDIR") or "", library)
files = [program, paths["stdlib"], paths["platstdlib"]]
if ".so" in library and os.path.exists(shared):
    files.append(os.path.realpath(shared))
    files.append(shared)
if sys.base_prefix not in ("/", "/usr"):
    files = [sys.base_prefix, *files]
print(json.dumps({
    "version": "%d.%d" % sys.version_info[:2],
    "path": program,
    "files": files,
    "cacheTag": sys.implementation.cache_tag,
}))
`;

/**
 * Finds the interpreters: those that are named, such as `3.11=/usr/bin/python3.11`, or without
 * names those on the path, the first one of each version. Rejects for a named one that does not
 * run, or is of another version.
 */
export async function findInterpreters(
  named: readonly string[],
  path: string,
): Promise<readonly PythonInterpreter[]> {
  if (named.length > 0) {
    return Promise.all(named.map((each) => openNamed(each, path)));
  }
  const found = await Promise.all(
    candidates(path).map((program) => openInterpreter(program, path)),
  );
  const byVersion = new Map<string, PythonInterpreter>();
  for (const interpreter of found) {
    if (interpreter !== undefined && !byVersion.has(interpreter.version) && hosts(interpreter)) {
      byVersion.set(interpreter.version, interpreter);
    }
  }
  return [...byVersion.values()];
}

/** The interpreter of this program, or of its virtual environment; undefined when it does not run. */
export async function openInterpreter(
  program: string,
  searched: string,
): Promise<PythonInterpreter | undefined> {
  try {
    const options = { timeoutMs: PROBE_TIMEOUT_MS, env: { PATH: searched } };
    const printed = await runInterpreter(program, ["-c", PROBE], options);
    const { files, ...found } = JSON.parse(printed) as PythonInterpreter;
    return { ...found, files: [...new Set(files)] };
  } catch {
    return undefined;
  }
}

async function openNamed(text: string, path: string): Promise<PythonInterpreter> {
  const [, version, program] = /^(3\.\d+)=(.+)$/.exec(text) ?? [];
  if (version === undefined || program === undefined || !isAbsolute(program)) {
    throw new Error(
      `--python ${text} does not name an interpreter, such as 3.11=/usr/bin/python3.11`,
    );
  }
  const found = await openInterpreter(program, path);
  if (found === undefined) {
    throw new Error(`--python ${text}: ${program} is not there, or does not run as Python`);
  }
  if (found.version !== version) {
    throw new Error(`--python ${text}: ${program} is Python ${found.version}`);
  }
  if (!hosts(found)) {
    throw new Error(`--python ${text}: services need Python 3.${MIN_MINOR_VERSION} or newer`);
  }
  return found;
}

function hosts({ version }: PythonInterpreter): boolean {
  return Number(version.split(".")[1]) >= MIN_MINOR_VERSION;
}

function candidates(path: string): string[] {
  const versions = Array.from(
    { length: MAX_MINOR_VERSION - MIN_MINOR_VERSION + 1 },
    (_, index) => `python3.${MIN_MINOR_VERSION + index}`,
  );
  return path
    .split(delimiter)
    .filter((folder) => isAbsolute(folder))
    .flatMap((folder) => ["python3", ...versions].map((name) => join(folder, name)))
    .filter((file) => existsSync(file));
}
