import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { workersFromCopy } from "./test/stripped.ts";

const source = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/**
 * Type stripping is WebAssembly, and Node 24 now and then ends a process with
 * many threads that use it, in V8's bookkeeping of the wrappers that it compiles
 * for what has been called 1,000 times ("Check failed: jit_page.has_value()", or
 * SIGSEGV). With a budget that nothing reaches, it compiles none. What is built
 * strips no types.
 */
const NO_COMPILED_WRAPPERS = "--wasm-wrapper-tiering-budget=1000000000";

/**
 * Compile cache of Node for every process and thread that tests start. Without
 * it, each one strips the types of all that it imports again: a storage thread
 * takes 0.2 s of processor time to start instead of 0.1 s, the program 0.75 s
 * instead of 0.45 s. Workers have none: their permissions rule it out (`test/stripped.ts`).
 */
process.env.NODE_COMPILE_CACHE ??= source("./node_modules/.cache/compile");

/**
 * What takes longest first, so that none of it is left to run alone at the end. Files of a project
 * stand together: a process that shares modules ends where a file of another project follows.
 */
const LONGEST = [
  "./test/e2e/clients/bentoml-files.test.ts",
  "./test/e2e/clients/python.test.ts",
  "./test/e2e/workers/faults.test.ts",
  "./test/e2e/clients/java-rust.test.ts",
  "./test/e2e/hosting/gpus.test.ts",
  "./test/e2e/docs/first-hour.test.ts",
  "./test/e2e/console/pages.test.ts",
  "./test/e2e/console/",
  "./test/pool/local-worker.test.ts",
  "./test/server/rpc/interceptors/access.test.ts",
  "./test/pool/remote-worker.test.ts",
  "./test/pool/fuzz.test.ts",
  "./test/e2e/clients/",
  "./test/e2e/workers/",
  "./test/e2e/python/",
  "./test/storage/",
  "./test/e2e/",
].map(source);

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const found = LONGEST.findIndex((folder) => moduleId.startsWith(folder));
      return found < 0 ? LONGEST.length : found;
    };
    // Within a folder by how long each took the last time, or by its size.
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

/** The contracts of the storage on each database, and what changes its whole process. */
const CORE = [
  "test/storage/**/*.test.ts",
  // It turns the clock by half an hour, with every timer that others left.
  "test/agent/service.test.ts",
];

/** The core programs whole. */
const SERVE = ["test/e2e/serve/**/*.test.ts", "test/e2e/start/first.test.ts"];

/** The pages in a browser, of which each process starts one. */
const CONSOLE = ["test/e2e/console/**/*.test.ts"];

/** All other whole programs: the platform, machines that join, clients in other languages, BentoML, what is shipped. */
const PROGRAMS = ["test/e2e/**/*.test.ts"];

export default defineConfig({
  plugins: [workersFromCopy],
  test: {
    globalSetup: ["test/folder-setup.ts", "test/postgres-setup.ts", "test/stripped.ts"],
    // Tests start real processes; on a busy machine that takes its time.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // The one deadline of what tests wait for; where it comes sooner, nothing waits longer.
    expect: { poll: { timeout: 30_000 } },
    // On machines that are shared, once more; the report says which had to. Elsewhere a race shows.
    retry: process.env.CI === undefined ? 0 : 1,
    // Two cores are common, and most files wait for processes of their own half of the time or longer.
    // With one more, tests of times failed now and then.
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        extends: true,
        test: { name: "core", include: CORE },
      },
      {
        extends: true,
        // Files share the modules that they import: the server anew takes each a second of processor time, and more.
        test: { name: "serve", include: SERVE, isolate: false },
      },
      {
        extends: true,
        test: { name: "console", include: CONSOLE, isolate: false },
      },
      {
        extends: true,
        test: { name: "e2e", include: PROGRAMS, exclude: [...SERVE, ...CONSOLE], isolate: false },
      },
      {
        extends: true,
        // Its files share the modules that they import, which takes a third of the time away.
        test: {
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: [...CORE, ...PROGRAMS],
          isolate: false,
        },
      },
    ],
    execArgv: [NO_COMPILED_WRAPPERS],
  },
  resolve: {
    alias: [
      { find: /^tessera-platform$/, replacement: source("./src/sdk/index.ts") },
      { find: /^tessera-platform\/client$/, replacement: source("./src/client/index.ts") },
    ],
  },
});
