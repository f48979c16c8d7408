/**
 * Python for the tests: virtual environments with packages from the registry,
 * made once and kept in `node_modules/.cache`, which a fresh checkout makes anew.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { stripped } from "../../stripped.ts";

export const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

const CACHE = join(ROOT, "node_modules/.cache/python");

/**
 * Compiled modules are kept, outside of the sources: a cold import of packages takes seconds, in
 * each process.
 */
export const COMPILED = {
  PYTHONDONTWRITEBYTECODE: "",
  PYTHONPYCACHEPREFIX: join(CACHE, "compiled"),
};

/** The server under test, for programs that start one. */
export const TESSERA_COMMAND = [
  process.execPath,
  "--disable-warning=ExperimentalWarning",
  stripped("test/e2e/cli/entry.ts"),
].join(" ");

const MAKES_ENVIRONMENTS = "import ensurepip, sys; sys.exit(sys.version_info < (3, 10))";

/** Why environments cannot be made here; undefined where they can. */
export const pythonMissing: string | undefined =
  spawnSync("python3", ["-c", MAKES_ENVIRONMENTS]).status === 0
    ? undefined
    : "there is no Python 3.10 or newer with venv";

export interface Environment {
  /** The interpreter. */
  readonly python: string;
  /** Where packages lie that were installed beside it, by the name that they were given. */
  readonly beside: (name: string) => string;
}

export interface EnvironmentOptions {
  readonly name: string;
  /** Installed with what they need. */
  readonly packages: readonly string[];
  /** Installed without what they need, each in a folder of its own, so that versions stand beside each other. */
  readonly alone?: Readonly<Record<string, string>>;
}

/** An environment with these packages. Rejects with what pip said. */
export async function environment(options: EnvironmentOptions): Promise<Environment> {
  const { name, packages, alone = {} } = options;
  const version = await run("python3", ["--version"]);
  const key = createHash("sha256")
    .update(JSON.stringify([version, options]))
    .digest("hex");
  const folder = join(CACHE, `${name}-${key.slice(0, 12)}`);
  const python = join(folder, "bin/python");
  const beside = (each: string): string => join(folder, "beside", each);
  const complete = join(folder, "complete");
  if (!existsSync(complete)) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(CACHE, { recursive: true });
    await run("python3", ["-m", "venv", folder]);
    const install = ["-m", "pip", "install", "--quiet", "--no-compile"];
    await Promise.all([
      run(python, [...install, ...packages]),
      ...Object.entries(alone).map(([each, spec]) =>
        run(python, [...install, "--no-deps", "--target", beside(each), spec]),
      ),
    ]);
    writeFileSync(complete, "");
  }
  return { python, beside };
}

export interface RunOptions {
  /** Besides the variables of this process. */
  readonly env?: Record<string, string>;
  /** The folder of this project unless it is said. */
  readonly cwd?: string;
}

/** Runs a program to its end; resolves with what it printed, rejects with all of it when it fails. */
export async function run(
  command: string,
  args: readonly string[],
  { env = {}, cwd = ROOT }: RunOptions = {},
): Promise<string> {
  const child: ChildProcess = spawn(command, args, {
    cwd,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...COMPILED, ...env },
  });
  const [stdout, stderr, [code]] = await Promise.all([
    child.stdout ? text(child.stdout) : "",
    child.stderr ? text(child.stderr) : "",
    once(child, "close"),
  ]);
  if (code !== 0) {
    throw new Error(`${command} ${args.join(" ")} ended with ${code}:\n${stdout}\n${stderr}`);
  }
  return stdout;
}
