import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const source = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/**
 * Type stripping is WebAssembly, and Node 24 now and then ends a process with
 * many threads that use it, in V8's bookkeeping of the wrappers that it compiles
 * for what has been called 1,000 times ("Check failed: jit_page.has_value()", or
 * SIGSEGV). With a budget that nothing reaches, it compiles none. What is built
 * strips no types.
 */
const NO_COMPILED_WRAPPERS = "--wasm-wrapper-tiering-budget=1000000000";

export default defineConfig({
  test: {
    globalSetup: ["test/postgres-setup.ts"],
    // Tests start real processes; on a busy machine that takes its time.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // On machines that are shared, once more; the report says which had to. Elsewhere a race shows.
    retry: process.env.CI === undefined ? 0 : 1,
    // Each file has processes of its own, and two cores are common.
    maxWorkers: 2,
    include: ["test/**/*.test.ts"],
    execArgv: [NO_COMPILED_WRAPPERS],
  },
  resolve: {
    alias: [
      { find: /^tessera$/, replacement: source("./src/sdk/index.ts") },
      { find: /^tessera\/client$/, replacement: source("./src/client/index.ts") },
    ],
  },
});
