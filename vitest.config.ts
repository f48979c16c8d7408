import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const source = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/postgres-setup.ts"],
    // Tests start real processes; on a busy machine that takes its time.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Each file has processes of its own, and two cores are common.
    maxWorkers: 2,
  },
  resolve: {
    alias: [
      { find: /^tessera$/, replacement: source("./src/sdk/index.ts") },
      { find: /^tessera\/client$/, replacement: source("./src/client/index.ts") },
    ],
  },
});
