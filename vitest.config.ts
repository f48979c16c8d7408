import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const source = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/**
 * The storage suites start and end hundreds of threads in one process, and
 * Node 24 now and then ends such a process in V8's bookkeeping of compiled
 * code ("Check failed: jit_page.has_value()"). Interpreted, it has nothing to
 * book; these tests wait for databases, and take as long as before. A node
 * starts one such thread in its life.
 */
const INTERPRETED = ["--no-opt", "--no-sparkplug", "--no-maglev", "--regexp-interpret-all"];

const STORAGE = "test/storage/**/*.test.ts";

export default defineConfig({
  test: {
    globalSetup: ["test/postgres-setup.ts"],
    // Tests start real processes; on a busy machine that takes its time.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Each file has processes of its own, and two cores are common.
    maxWorkers: 2,
    projects: [
      { extends: true, test: { name: "storage", include: [STORAGE], execArgv: INTERPRETED } },
      { extends: true, test: { name: "all", include: ["test/**/*.test.ts"], exclude: [STORAGE] } },
    ],
  },
  resolve: {
    alias: [
      { find: /^tessera$/, replacement: source("./src/sdk/index.ts") },
      { find: /^tessera\/client$/, replacement: source("./src/client/index.ts") },
    ],
  },
});
