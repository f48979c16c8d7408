/**
 * The program as JavaScript, for tests, which start thousands of processes of it. One that starts
 * from TypeScript strips the types of all that it imports; a worker does so each time, because Node
 * keeps no compile cache under the permission model: 0.27 s of processor time instead of 0.1 s. The
 * copy is made once for a test run, with every line and column where it was.
 */
import {
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { dirname, join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Plugin } from "vitest/config";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const COPY = join(ROOT, "node_modules/.cache/program");

/** The program, and what tests start in its place. */
const MODULES = [
  "src/**/*.ts",
  "test/e2e/cli/{entry,impatient}.ts",
  "test/e2e/workers/faults/{node,without-fence}.ts",
];
/** The console is served from `dist`. */
const NOT_COPIED = ["**/*.d.ts", "src/console/app/**"];
const FILES = ["package.json", "src/**/*.sql"];
/** What the program reads beside its own folder. */
const BESIDE = ["clients", "dist", "gen", "templates"];

/** The modules that start a worker or say what it may read, each by a path relative to itself. */
const START_WORKERS = [
  "src/artifacts/images/isolated.ts",
  "src/deployments/permissions.ts",
  "src/pool/launch/node.ts",
];

/** The path of a module in the copy. */
export function stripped(path: string): string {
  return join(COPY, path.replace(/\.ts$/, ".js"));
}

/** Makes the copy; vitest calls it before the first test. */
export default function makeCopy(): void {
  for (const path of globSync(MODULES, { cwd: ROOT, exclude: NOT_COPIED })) {
    copy(path, (source) =>
      stripTypeScriptTypes(source).replace(
        /(?<=\b(?:from|import)\s*\(?\s*"\.[^"]*\.)ts(?=")/g,
        "js",
      ),
    );
  }
  for (const path of globSync(FILES, { cwd: ROOT })) {
    copy(path, (source) => source);
  }
  for (const name of BESIDE) {
    link(name);
  }
}

/** What is in the copy already has the time of its source: another run may be reading it. */
function copy(path: string, convert: (source: string) => string): void {
  const [from, to] = [join(ROOT, path), stripped(path)];
  const { mtime } = statSync(from);
  if (statSync(to, { throwIfNoEntry: false })?.mtime.getTime() === mtime.getTime()) {
    return;
  }
  mkdirSync(dirname(to), { recursive: true });
  const made = `${to}.${process.pid}`;
  writeFileSync(made, convert(readFileSync(from, "utf8")));
  utimesSync(made, mtime, mtime);
  renameSync(made, to);
}

function link(name: string): void {
  try {
    symlinkSync(relative(COPY, join(ROOT, name)), join(COPY, name));
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code !== "EEXIST") {
      throw err;
    }
  }
}

/** Has workers run the copy that tests start in their own process. */
export const workersFromCopy: Plugin = {
  name: "workers-from-copy",
  enforce: "pre",
  transform(code, id) {
    const name = START_WORKERS.find((it) => id === join(ROOT, it));
    const url = name && pathToFileURL(stripped(name));
    return url && code.replaceAll("import.meta.url", JSON.stringify(url));
  },
};
