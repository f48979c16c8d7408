/**
 * The program of workers as JavaScript, for tests. Under the permission model Node keeps no compile
 * cache, so each worker that starts from TypeScript strips the types of all that it imports: 0.27 s
 * of processor time instead of 0.11 s, and tests start thousands. The copy is made once for a test
 * run, with every line and column where it was.
 */
import { globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Plugin } from "vitest/config";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const COPY = join(ROOT, "node_modules/.cache/worker");

/** What a worker may read of the program (`src/deployments/permissions.ts`). */
const FOLDERS = "src/{collections,protocol,sdk,worker}/**/*.ts";

/** The modules that name its files, relative to themselves. */
const NAMES = [
  "src/artifacts/images/isolated.ts",
  "src/deployments/permissions.ts",
  "src/pool/launch/node.ts",
];

/** The path of a module in the copy. */
function copyOf(path: string): string {
  return join(COPY, path.replace(/\.ts$/, ".js"));
}

/** Makes the copy; vitest calls it before the first test. */
export default function makeCopy(): void {
  for (const path of globSync(FOLDERS, { cwd: ROOT, exclude: ["**/*.d.ts"] })) {
    const code = stripTypeScriptTypes(readFileSync(join(ROOT, path), "utf8"));
    write(copyOf(path), code.replace(/(?<=\b(?:from|import) ?\(?"\.[^"]*\.)ts(?=")/g, "js"));
  }
  write(join(COPY, "package.json"), '{ "type": "module" }\n');
}

/** Leaves what is the same as it is: another run may be reading it. */
function write(path: string, content: string): void {
  mkdirSync(dirname(path), { recursive: true });
  try {
    if (readFileSync(path, "utf8") === content) {
      return;
    }
  } catch {
    // It is new.
  }
  writeFileSync(path, content);
}

/** The program of a worker. */
export const WORKER_PROGRAM = copyOf("src/worker/main.ts");

/** Has workers run the copy that tests start in their own process; programs that they start strip. */
export const workersFromCopy: Plugin = {
  name: "workers-from-copy",
  enforce: "pre",
  transform(code, id) {
    const name = NAMES.find((it) => id === join(ROOT, it));
    return name && code.replaceAll("import.meta.url", JSON.stringify(pathToFileURL(copyOf(name))));
  },
};
