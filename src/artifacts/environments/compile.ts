/**
 * Compiles the packages of an environment, because nothing can be compiled later in a read-only
 * mount. The compiler is started as a worker is, held by the same sandbox and by the memory of the
 * deployment that the environment is made for, with one processor. It can write to a scratch
 * folder only: the files of packages are those of the cache, which others use, too. What it wrote
 * is moved from there to where `import` looks for it.
 *
 * A module for which the limits are too low is left out. It is compiled by each worker that
 * imports it, within the worker's own limits.
 */
import { lstat, mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { compilerProgram, OUT_OF_MEMORY_NAME, SOURCES_NAME } from "../../pool/launch/compiler.ts";
import type { LaunchProgram } from "../../pool/launchers.ts";
import { DEFAULT_LIMITS, mebibytes } from "../../pool/limits.ts";
import { ServiceProcess } from "../../pool/process.ts";
import { readStart } from "./contents.ts";
import type { PythonInterpreter } from "./interpreters.ts";

/** Modules that one process compiles; what it writes is counted as files of a worker are. */
const MAX_MODULES_PER_COMPILER = 2_000;
/** Modules that end a compiler. After this number, all others of an environment are left out. */
const MAX_LEFT_OUT_MODULES = 20;
/** Processor time in which a compiler finishes a module; the largest take seconds. */
const MAX_MODULE_CPU_MS = 20_000;
/** The same, where the machine is busy, or tells of no processor time. */
const MODULE_TIMEOUT_MS = 60_000;
/** Time to compile all modules: ten thousand take less than a minute. */
const COMPILE_TIMEOUT_MS = 300_000;
/** How often it is looked how far a compiler is. */
const PROGRESS_CHECK_INTERVAL_MS = 1_000;
/** The list of modules that a compiler has not enough memory for: a few bytes for each. */
const MAX_LIST_BYTES = 16 * 1024;
/** A compiler says nothing. */
const MAX_COMPILER_MESSAGE_BYTES = 1024;

interface CompilePackagesOptions {
  /** The environment. */
  readonly folder: string;
  readonly interpreter: PythonInterpreter;
  readonly launch: LaunchProgram;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  /** A folder on the same file system for what is compiled; it is made, and removed. */
  readonly scratchFolder: string;
  readonly signal?: AbortSignal | undefined;
}

/** A module that is not compiled. */
interface LeftOutModule {
  /** Its path, from the folder of the packages. */
  readonly path: string;
  readonly reason: string;
}

/** Compiles what can be, and returns what was left out. */
export async function compilePackages(
  options: CompilePackagesOptions,
): Promise<readonly LeftOutModule[]> {
  const { folder, interpreter, signal } = options;
  const packages = packagesIn(folder, interpreter);
  const sources = await modulesIn(packages);
  const untilMs = performance.now() + COMPILE_TIMEOUT_MS;
  const leftOut: LeftOutModule[] = [];
  for (let next = 0; next < sources.length; ) {
    signal?.throwIfAborted();
    const batch = sources.slice(next, next + MAX_MODULES_PER_COMPILER);
    const { done, reason, tooLarge } = await compileBatch(batch, untilMs, options);
    next += done;
    leftOut.push(...tooLarge.map((path) => ({ path, reason: lacksMemory(options.memoryBytes) })));
    const [at] = batch.slice(done);
    if (at !== undefined) {
      leftOut.push({ path: at, reason });
      next += 1;
    }
    if (leftOut.length >= MAX_LEFT_OUT_MODULES || performance.now() >= untilMs) {
      leftOut.push(
        ...sources.slice(next).map((path) => ({ path, reason: "the ones before took too long" })),
      );
      break;
    }
  }
  return leftOut.map(({ path, reason }) => ({ path: relative(packages, path), reason }));
}

/** The folder of the packages of an environment. */
export function packagesIn(
  folder: string,
  { version }: Pick<PythonInterpreter, "version">,
): string {
  return join(folder, "lib", `python${version}`, "site-packages");
}

async function modulesIn(packages: string): Promise<string[]> {
  const entries = await readdir(packages, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && entry.name.endsWith(".py"))
    .map(({ parentPath, name }) => join(parentPath, name))
    .toSorted();
}

interface CompiledBatch {
  /** The number of modules that it was done with when it ended. */
  readonly done: number;
  /** Why it ended before it was done with all. */
  readonly reason: string;
  /** Modules that it has not enough memory for. */
  readonly tooLarge: readonly string[];
}

/** Compiles modules in one process. */
async function compileBatch(
  sources: readonly string[],
  untilMs: number,
  options: CompilePackagesOptions,
): Promise<CompiledBatch> {
  const { interpreter, scratchFolder } = options;
  await mkdir(scratchFolder, { mode: 0o700 });
  try {
    await writeFile(join(scratchFolder, SOURCES_NAME), JSON.stringify(sources));
    const reason = await runCompiler(untilMs, options);
    let done = 0;
    for (const source of sources) {
      const compiled = join(scratchFolder, `${done}.pyc`);
      const found = await lstat(compiled).catch(() => undefined);
      if (found === undefined) {
        break;
      }
      if (found.isFile() && found.size > 0) {
        await putCompiled(compiled, source, interpreter);
      }
      done += 1;
    }
    const listed = await readStart(join(scratchFolder, OUT_OF_MEMORY_NAME), MAX_LIST_BYTES);
    const tooLarge = listed.split("\n").flatMap((number) => sources[Number(number || -1)] ?? []);
    return { done, reason, tooLarge: [...new Set(tooLarge)] };
  } finally {
    await rm(scratchFolder, { recursive: true, force: true });
  }
}

function lacksMemory(memoryBytes: number): string {
  return `it cannot be compiled within ${mebibytes(memoryBytes)} of memory`;
}

/** Runs the compiler to its end, and says how it ended. */
async function runCompiler(
  untilMs: number,
  {
    folder,
    interpreter,
    launch,
    memoryBytes,
    diskBytes,
    scratchFolder,
    signal,
  }: CompilePackagesOptions,
): Promise<string> {
  const { path, files } = interpreter;
  const compiler = new ServiceProcess({
    launch: launch(compilerProgram({ path, files, memoryBytes })),
    rights: {
      read: [folder],
      write: [scratchFolder],
      addons: false,
      threads: false,
      processes: false,
      sqlite: false,
    },
    scratchFolder,
    env: {},
    limits: { ...DEFAULT_LIMITS, memoryBytes, diskBytes, cpus: 1 },
    maxMessageBytes: MAX_COMPILER_MESSAGE_BYTES,
    onMessage: () => compiler.kill("it sent a message"),
    onFault: () => compiler.kill("it sent a message"),
    onOutput() {},
  });
  const abort = (): void => compiler.kill("it was broken off");
  signal?.addEventListener("abort", abort, { once: true });
  let [written, sinceMs, sinceCpuMs] = [0, performance.now(), 0];
  const look = async (): Promise<void> => {
    const nowMs = performance.now();
    const { cpuMs } = compiler.usage();
    const now = (await readdir(scratchFolder)).length;
    if (now !== written) {
      [written, sinceMs, sinceCpuMs] = [now, nowMs, cpuMs];
    }
    const isSlow = cpuMs - sinceCpuMs > MAX_MODULE_CPU_MS || nowMs - sinceMs > MODULE_TIMEOUT_MS;
    if (isSlow || nowMs > untilMs) {
      compiler.kill(`compiling it takes more than ${Math.round((nowMs - sinceMs) / 1_000)} s`);
    }
  };
  const timer = setInterval(() => void look().catch(() => {}), PROGRESS_CHECK_INTERVAL_MS);
  try {
    const { message } = await compiler.exited;
    return message;
  } finally {
    clearInterval(timer);
    signal?.removeEventListener("abort", abort);
  }
}

/** Puts a compiled module where `import` looks for it (PEP 3147). */
async function putCompiled(
  compiled: string,
  source: string,
  { cacheTag }: PythonInterpreter,
): Promise<void> {
  const cache = join(dirname(source), "__pycache__");
  await mkdir(cache, { recursive: true }).catch(() => {
    // A package has a file of this name.
  });
  if (!(await lstat(cache)).isDirectory()) {
    return;
  }
  // Never into a file that a package brings: that one is the cache's, too.
  const target = join(cache, `${basename(source, ".py")}.${cacheTag}.pyc`);
  await rm(target, { recursive: true, force: true });
  await rename(compiled, target);
}
