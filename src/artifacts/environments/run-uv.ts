/** Runs uv as a child process, and says what it complained of. */
import { spawn } from "node:child_process";
import { residenceOf } from "../../pool/usage.ts";
import { EnvironmentError, OversizedError } from "./environment.ts";

/** A resolution, or an installation over a slow connection. */
const RUN_TIMEOUT_MS = 15 * 60_000;
/** What is kept of its output: an explanation has a few lines, a lock some hundred kilobytes. */
const MAX_OUTPUT_CHARACTERS = 8 * 1024 ** 2;
/** How often the memory of uv is looked at: it takes half a gigabyte a second at worst. */
const MEMORY_CHECK_INTERVAL_MS = 100;
/** What is shown of an explanation. */
const MAX_SHOWN_CHARACTERS = 2_000;

/** Variables that uv gets: where packages come from, and how they are reached. */
const PASSED =
  /^(?:UV_(?:DEFAULT_INDEX|INDEX|EXTRA_INDEX|FIND_LINKS|KEYRING|NATIVE_TLS|SYSTEM_CERTS|INSECURE_HOST|HTTP_|OFFLINE|NO_INDEX).*|PIP_(?:EXTRA_INDEX_URL|FIND_LINKS|CERT)|SSL_CERT_(?:FILE|DIR)|NETRC|HOME|PATH|(?:HTTPS?|ALL|NO)_PROXY)$/i;

export interface UvRun {
  /** The path of the program. */
  readonly uv: string;
  readonly args: readonly string[];
  /** The folder of its cache. */
  readonly cacheFolder: string;
  readonly cwd?: string;
  /** Of this, it gets what `PASSED` names. */
  readonly env: NodeJS.ProcessEnv;
  /** Variables besides these. */
  readonly variables?: NodeJS.ProcessEnv;
  readonly signal?: AbortSignal | undefined;
  /** Memory that it may take, for files of packages that it reads as a whole. Default: all. */
  readonly maxMemoryBytes?: number;
}

/** Its output. Rejects with an `EnvironmentError` that explains a failure. */
export async function runUv(options: UvRun): Promise<string> {
  const { uv, args, cacheFolder, cwd, env, variables, signal, maxMemoryBytes } = options;
  signal?.throwIfAborted();
  const child = spawn(uv, args, {
    ...(cwd !== undefined && { cwd }),
    env: {
      ...passed(env),
      UV_CACHE_DIR: cacheFolder,
      UV_NO_PROGRESS: "1",
      UV_PYTHON_DOWNLOADS: "never",
      ...variables,
    },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: RUN_TIMEOUT_MS,
    killSignal: "SIGKILL",
    ...(signal && { signal }),
  });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout = (stdout + text).slice(0, MAX_OUTPUT_CHARACTERS);
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr = (stderr + text).slice(0, MAX_OUTPUT_CHARACTERS);
  });
  let isTooLarge = false;
  const watch = setInterval(() => {
    const { bytes = 0 } = (child.pid !== undefined && residenceOf(child.pid)) || {};
    if (maxMemoryBytes !== undefined && bytes > maxMemoryBytes) {
      isTooLarge = true;
      child.kill("SIGKILL");
    }
  }, MEMORY_CHECK_INTERVAL_MS);
  const { promise, resolve, reject } = Promise.withResolvers<number | null>();
  child.once("error", reject);
  child.once("close", (code) => resolve(code));
  try {
    const code = await promise;
    if (code === 0) {
      return stdout;
    }
  } catch (err) {
    signal?.throwIfAborted();
    throw new EnvironmentError("ENVIRONMENT_UNAVAILABLE", `${uv} cannot be run: ${String(err)}`, {
      cause: err,
    });
  } finally {
    clearInterval(watch);
  }
  signal?.throwIfAborted();
  throw isTooLarge ? tooLarge(maxMemoryBytes) : explained(stderr);
}

function passed(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { PIP_INDEX_URL, PIP_EXTRA_INDEX_URL, PIP_FIND_LINKS, PIP_CERT } = env;
  return {
    // As pip is set up, where uv is not.
    ...(PIP_INDEX_URL && { UV_DEFAULT_INDEX: PIP_INDEX_URL }),
    ...(PIP_EXTRA_INDEX_URL && { UV_INDEX: PIP_EXTRA_INDEX_URL }),
    ...(PIP_FIND_LINKS && { UV_FIND_LINKS: PIP_FIND_LINKS.trim().split(/\s+/).join(",") }),
    ...(PIP_CERT && { SSL_CERT_FILE: PIP_CERT }),
    ...Object.fromEntries(Object.entries(env).filter(([name]) => PASSED.test(name))),
  };
}

function tooLarge(maxMemoryBytes = 0): OversizedError {
  const limit = Math.round(maxMemoryBytes / 1024 ** 2);
  return new OversizedError(
    `installing its packages takes more than ${limit} MiB of memory: the files METADATA or RECORD of one are not what they seem`,
    { isFinal: true },
  );
}

function explained(stderr: string): EnvironmentError {
  const said = useful(stderr);
  if (/Hash mismatch/.test(said)) {
    return new EnvironmentError(
      "LOCK_INVALID",
      `a package is another one than its lock names:\n${said}\nlock the packages again, or ask who runs the package index`,
    );
  }
  if (/No space left on device/.test(said)) {
    return new EnvironmentError(
      "ENVIRONMENT_UNAVAILABLE",
      "the disk is full: no packages can be installed",
    );
  }
  if (
    /building from source is disabled|no usable wheels|matching platform tag|matching Python/.test(
      said,
    )
  ) {
    return new EnvironmentError(
      "ENVIRONMENT_UNAVAILABLE",
      `a package has no wheel for this platform and this version of Python, and packages are not built from source:\n${said}\nuse a release that has one, or deploy with --build-from-source NAME, which builds it where you are`,
    );
  }
  if (/Failed to fetch|error sending request|dns error|tcp connect error|timed out/.test(said)) {
    return new EnvironmentError(
      "ENVIRONMENT_UNAVAILABLE",
      `the package index cannot be reached:\n${said}`,
    );
  }
  return new EnvironmentError("LOCK_INVALID", `the packages cannot be resolved:\n${said}`);
}

/** Its explanation without progress, and without passwords in addresses. */
function useful(stderr: string): string {
  const lines = stderr
    .replaceAll(/\/\/[^/@\s]+@/g, "//")
    .split("\n")
    .map((line) => line.trimEnd())
    .filter(
      (line) => line !== "" && !/^(?:Using Python|Resolved|Prepared|Installed|Audited)/.test(line),
    );
  return lines.join("\n").slice(0, MAX_SHOWN_CHARACTERS);
}
