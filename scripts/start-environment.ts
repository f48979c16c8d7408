/**
 * Virtual environments of the examples in Python: made once by pip, each in its
 * folder, and made anew when their requirements or interpreter have changed or
 * an earlier start was interrupted.
 */
import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

const run = promisify(execFile);

/** A cold start of an interpreter on a slow disk takes a few seconds. */
const CHECK_TIMEOUT_MS = 30_000;
/** A few hundred megabytes over a slow line. */
const INSTALL_TIMEOUT_MS = 20 * 60_000;
const VERSION = `
import sys
print("%d.%d" % sys.version_info[:2])
import ensurepip, venv
print("venv")
`;
const UNREACHABLE =
  /connection broken by|NewConnectionError|NameResolutionError|ConnectTimeoutError|ProxyError|Network is unreachable/i;

/** Versions of Python by their minor number: `{ oldest: 10, newest: 12 }` is 3.10 to 3.12. */
export interface PythonVersions {
  readonly oldest: number;
  readonly newest: number;
}

export interface EnvironmentOptions {
  /** A list of all packages, which are installed without what they ask for. */
  readonly requirements: string;
  readonly versions: PythonVersions;
  /** Where the environment is, or will be. */
  readonly folder: string;
  /** Told what is being done, in a few words. */
  readonly onProgress: (text: string) => void;
  readonly signal: AbortSignal;
  /** Variables of the interpreter and of pip. */
  readonly env: NodeJS.ProcessEnv;
}

/** Why there is no environment, in one line. */
export class EnvironmentUnavailable extends Error {}

/** The interpreter of the environment. Rejects with an `EnvironmentUnavailable` that says why there is none. */
export async function environment(options: EnvironmentOptions): Promise<string> {
  const { requirements, folder, env, signal, onProgress } = options;
  const { command, version } = await findPython(options);
  const packages = readFileSync(requirements, "utf8");
  const key = createHash("sha256").update(`${version}\n${packages}`).digest("hex");
  const stamp = join(folder, "complete");
  const python = join(folder, "bin", "python");
  if (readText(stamp) === key && (await probe(python, env)) !== undefined) {
    return python;
  }
  rmSync(folder, { recursive: true, force: true });
  onProgress(`making an environment with Python ${version}`);
  try {
    await run(command, ["-m", "venv", folder], { env, signal, timeout: INSTALL_TIMEOUT_MS });
  } catch (err) {
    signal.throwIfAborted();
    throw new EnvironmentUnavailable(`${command} -m venv failed: ${lastLine(String(err))}`);
  }
  await install(
    python,
    options,
    packages.split("\n").filter((line) => /^[^#\s]/.test(line)).length,
  );
  writeFileSync(stamp, key);
  return python;
}

/** Installs the packages, one of which is told at a time. */
async function install(python: string, options: EnvironmentOptions, count: number): Promise<void> {
  const { requirements, env, signal, onProgress } = options;
  const quiet = ["--no-input", "--disable-pip-version-check", "--progress-bar", "off"];
  const patience = ["--retries", "1", "--timeout", "15"];
  const args = ["-m", "pip", "install", "--no-deps", ...quiet, ...patience, "-r", requirements];
  const child = spawn(python, args, {
    env,
    stdio: ["ignore", "pipe", "pipe"],
    signal,
    timeout: INSTALL_TIMEOUT_MS,
  });
  let collected = 0;
  createInterface({ input: child.stdout }).on("line", (line) => {
    // What comes from a folder is processed, what comes from an index is collected.
    const [, found] = /^(?:Collecting|Processing) (?:\S*\/)?(\S+)/.exec(line) ?? [];
    const [, size] = /^\s*Downloading .*\((.+)\)$/.exec(line) ?? [];
    if (found !== undefined) {
      collected += 1;
      onProgress(`${collected}/${count} ${found}`);
    } else if (size !== undefined) {
      onProgress(`${collected}/${count} downloading ${size}`);
    } else if (line.startsWith("Installing collected packages")) {
      onProgress("installing");
    }
  });
  const problems: string[] = [];
  createInterface({ input: child.stderr }).on("line", (line) => {
    problems.push(line);
    problems.splice(0, problems.length - MAX_PROBLEM_LINES);
  });
  const [code, killed] = (await once(child, "close")) as [number | null, string | null];
  if (code !== 0) {
    signal.throwIfAborted();
    const said = problems.filter((line) => line.trim() !== "");
    throw new EnvironmentUnavailable(
      said.some((line) => UNREACHABLE.test(line))
        ? "no network: pip cannot reach the index of packages"
        : `pip failed: ${said.at(-1)?.trim() ?? killed ?? `exit code ${code}`}`,
    );
  }
}

/** How much of pip's errors is kept. */
const MAX_PROBLEM_LINES = 100;

/** The first interpreter on the PATH that fits. */
async function findPython({ versions, env }: EnvironmentOptions) {
  const { oldest, newest } = versions;
  const minors = Array.from({ length: newest - oldest + 1 }, (_, i) => newest - i);
  const reasons: string[] = [];
  for (const command of ["python3", ...minors.map((minor) => `python3.${minor}`)]) {
    const found = await probe(command, env);
    if (found === undefined) {
      continue;
    }
    const minor = Number(found.version.split(".")[1]);
    if (minor < oldest || minor > newest) {
      reasons.push(`${command} is ${found.version}`);
    } else if (!found.hasVenv) {
      reasons.push(`${command} has no venv (on Debian, install python3-venv)`);
    } else {
      return { command, version: found.version };
    }
  }
  const [reason = "there is no python3"] = reasons;
  throw new EnvironmentUnavailable(`${reason}; it needs Python 3.${oldest} to 3.${newest}`);
}

/** The version of an interpreter such as `3.11`; undefined for what is none, or does not run. */
async function probe(command: string, env: NodeJS.ProcessEnv) {
  try {
    const { stdout } = await run(command, ["-c", VERSION], { env, timeout: CHECK_TIMEOUT_MS });
    return { version: stdout.split("\n")[0] ?? "", hasVenv: true };
  } catch (err) {
    const { stdout } = err as { readonly stdout?: string };
    const [version = ""] = stdout?.split("\n") ?? [];
    return version === "" ? undefined : { version, hasVenv: false };
  }
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1) ?? "";
}
