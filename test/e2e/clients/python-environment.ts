/**
 * Python for the tests: virtual environments with packages from the registry,
 * made once and kept in `node_modules/.cache`, which a fresh checkout makes anew.
 * uv makes them: `venv` and pip take 5 to 30 s of processor time for each.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { runUv } from "../../../src/artifacts/environments/run-uv.ts";
import { findUv } from "../../../src/artifacts/environments/uv.ts";
import { currentPlatform } from "../../../src/artifacts/platform.ts";
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

/** What an environment depends on, and the interpreter behind what may be a script. */
const INTERPRETER = "import json, sys; print(json.dumps([sys.version, sys.executable]))";

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

/** An environment with these packages, without pip unless it is one of them. Rejects with what uv said. */
export async function environment(options: EnvironmentOptions): Promise<Environment> {
  const { name, packages, alone = {} } = options;
  const [version, interpreter = ""] = JSON.parse(await run("python3", ["-c", INTERPRETER]));
  const key = createHash("sha256")
    .update(JSON.stringify([version, options]))
    .digest("hex");
  const folder = join(CACHE, `${name}-${key.slice(0, 12)}`);
  if (!existsSync(folder)) {
    const unfinished = `${folder}.${randomUUID()}`;
    // It is used from where it is moved to.
    const uv = await uvOf(interpreter);
    await uv("venv", "--relocatable", "--python", interpreter, unfinished);
    const install = ["pip", "install", "--python", join(unfinished, "bin/python")];
    await uv(...install, ...packages);
    for (const [each, spec] of Object.entries(alone)) {
      await uv(...install, "--no-deps", "--target", join(unfinished, "beside", each), spec);
    }
    finish(unfinished, folder);
  }
  return {
    python: join(folder, "bin/python"),
    beside: (each) => join(folder, "beside", each),
  };
}

/** Runs uv, which is fetched once into the checkout. */
async function uvOf(path: string): Promise<(...args: readonly string[]) => Promise<string>> {
  const { env } = process;
  const options = { folder: CACHE, platform: currentPlatform(), interpreter: { path }, env };
  const uv = await findUv(options);
  return (...args) => runUv({ uv, args, cacheFolder: join(CACHE, "uv-cache"), env });
}

/** Another file of tests may have made it meanwhile. */
function finish(unfinished: string, folder: string): void {
  try {
    renameSync(unfinished, folder);
  } catch (err) {
    if (!existsSync(folder)) {
      throw err;
    }
    rmSync(unfinished, { recursive: true });
  }
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
