/**
 * Compiles modules of Python that somebody brings, as `import` would: a compiler can be made to
 * take gigabytes or to crash by what it reads, so it is started as a worker is. It runs in the
 * interpreter of the machine and not in that of their environment, without `site` (`-I -S`):
 * it reads the modules, and runs nothing of them.
 */
import type { LaunchOptions, ProgramOf, WorkerProgram } from "./launch.ts";

/** The modules to compile, in the scratch folder: their paths, as a list in JSON. */
export const SOURCES_NAME = "sources.json";
/** Where it lists the numbers of those for which there is not enough memory, one a line. */
export const OUT_OF_MEMORY_NAME = "out-of-memory";

/**
 * Writes each module compiled to `<number>.pyc` in the scratch folder, one after the other, and
 * an empty file for one that cannot be compiled. Its last argument limits its address space.
 */
const COMPILE = `
import json, os, py_compile, sys, warnings
folder, limit = sys.argv[1], int(sys.argv[2])
warnings.simplefilter("ignore")
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
except (ImportError, OSError, ValueError):
    pass
with open(os.path.join(folder, "${SOURCES_NAME}"), encoding="utf-8") as opened:
    sources = json.load(opened)
for number, source in enumerate(sources):
    target = os.path.join(folder, "%d.pyc" % number)
    try:
        py_compile.compile(source, target, doraise=True)
    except Exception as error:
        # The compiler loses a MemoryError now and then, and says that by a SystemError.
        if getattr(error, "exc_type_name", type(error).__name__) in ("MemoryError", "SystemError"):
            with open(os.path.join(folder, "${OUT_OF_MEMORY_NAME}"), "a") as opened:
                opened.write("%d\\n" % number)
        open(target, "wb").close()
`;

interface CompilerOptions {
  /** The interpreter of the machine, by its absolute path. */
  readonly path: string;
  /** Its installation, by absolute paths. */
  readonly files: readonly string[];
  readonly memoryBytes: number;
}

/** The compiler of an interpreter. What it reads beside its installation are the rights of its launch. */
export function compilerProgram({ path, files, memoryBytes }: CompilerOptions): ProgramOf {
  return ({ scratchFolder }: LaunchOptions): WorkerProgram => ({
    command: [path, "-I", "-S", "-c", COMPILE, scratchFolder, String(memoryBytes)],
    env: { LANG: "C.UTF-8" },
    files,
  });
}
