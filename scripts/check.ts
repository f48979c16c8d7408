/**
 * Runs every check that must pass before a change lands, fastest first: format
 * and lint, types, proto, generated code, tests (including the architecture
 * rules). `--without-tests` skips the tests, for when they have just run.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const fresh = mkdtempSync(join(tmpdir(), "tessera-gen-"));

const exported = join(fresh, "proto");

/** What stands in `clients/proto` and is written by hand. */
const UNEXPORTED = ["--exclude=README.md", "--exclude=buf.yaml"];

/** The API of the last release, as `npm run release:proto` wrote it. */
const RELEASED = "scripts/released/api.binpb";

/** What the client in Python has of the platform's API. */
const PYTHON = "clients/python/src/tessera/gen";

const STEPS: readonly (readonly [name: string, ...command: string[]])[] = [
  ["format and lint", "biome", "ci", "--error-on-warnings", "."],
  ["types", "tsc", "-p", "."],
  ["types of the documentation's site", "tsc", "-p", "docs/.vitepress"],
  ["types of the console", "tsc", "-p", "src/console/app"],
  ["proto format", "buf", "format", "--diff", "--exit-code", "proto"],
  ["proto lint", "buf", "lint"],
  ["proto compatible with the last release", "buf", "breaking", "proto", "--against", RELEASED],
  ["generated code", "buf", "generate", "--output", fresh],
  ["generated code is fresh", "diff", "-r", join(fresh, "gen"), "gen"],
  ["protos for other languages", "node", "scripts/export-proto.ts", "--output", exported],
  ["protos for other languages are fresh", "diff", "-r", ...UNEXPORTED, exported, "clients/proto"],
  ["protos for other languages lint", "buf", "lint", "clients/proto"],
  ["the client in Python is fresh", "diff", "-rx__pycache__", join(fresh, PYTHON), PYTHON],
  ["tests", "vitest", "run"],
];

const withoutTests = process.argv.includes("--without-tests");

try {
  for (const [name, command, ...args] of STEPS) {
    if (withoutTests && name === "tests") {
      continue;
    }
    const begun = performance.now();
    const { status } = spawnSync(command ?? "", args, { stdio: "inherit" });
    const seconds = ((performance.now() - begun) / 1000).toFixed(1);
    if (status !== 0) {
      process.stderr.write(`check: ${name} failed after ${seconds} s\n`);
      process.exitCode = 1;
      break;
    }
    process.stdout.write(`check: ${name} ok (${seconds} s)\n`);
  }
} finally {
  rmSync(fresh, { recursive: true, force: true });
}
