/**
 * Runs every check that must pass before a change lands: format and lint, types, proto and
 * generated code side by side, then the tests (including the architecture rules).
 * `--without-tests` skips the tests, for when they have just run.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
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

type Step = readonly [name: string, ...command: string[]];

/** The compiler, which looks again only at what depends on a change since the last check. */
function types(of: string, project: string): Step {
  const kept = join("node_modules/.cache/types", `${project.replaceAll("/", "-")}.tsbuildinfo`);
  return [of, "tsc", "-p", project, "--incremental", "--tsBuildInfoFile", kept];
}

/** Lists run side by side, the steps of each in order. */
const SIDE_BY_SIDE: readonly (readonly Step[])[] = [
  [
    types("types", "."),
    types("types of the documentation's site", "docs/.vitepress"),
    types("types of the console", "src/console/app"),
  ],
  [
    ["proto format", "buf", "format", "--diff", "--exit-code", "proto"],
    ["proto lint", "buf", "lint"],
    ["proto compatible with the last release", "buf", "breaking", "proto", "--against", RELEASED],
    ["generated code", "buf", "generate", "--output", fresh],
    ["generated code is fresh", "diff", "-r", join(fresh, "gen"), "gen"],
    ["protos for other languages", "node", "scripts/export-proto.ts", "--output", exported],
    [
      "protos for other languages are fresh",
      "diff",
      "-r",
      ...UNEXPORTED,
      exported,
      "clients/proto",
    ],
    ["protos for other languages lint", "buf", "lint", "clients/proto"],
    ["the client in Python is fresh", "diff", "-rx__pycache__", join(fresh, PYTHON), PYTHON],
  ],
  [["format and lint", "biome", "ci", "--error-on-warnings", "."]],
];

const TESTS: readonly Step[] = process.argv.includes("--without-tests")
  ? []
  : [["tests", "vitest", "run"]];

/**
 * Runs steps one after the other until one fails, and says whether none did.
 * @param output "pipe": what a step says is shown whole at its end, for steps that others run beside
 */
async function run(steps: readonly Step[], output: "inherit" | "pipe"): Promise<boolean> {
  for (const [name, command = "", ...args] of steps) {
    const begun = performance.now();
    const child = spawn(command, args, { stdio: ["inherit", output, output] });
    const said: Buffer[] = [];
    child.stdout?.on("data", (chunk: Buffer) => said.push(chunk));
    child.stderr?.on("data", (chunk: Buffer) => said.push(chunk));
    const [status] = await once(child, "close");
    process.stderr.write(Buffer.concat(said));
    const seconds = ((performance.now() - begun) / 1000).toFixed(1);
    if (status !== 0) {
      process.stderr.write(`check: ${name} failed after ${seconds} s\n`);
      return false;
    }
    process.stdout.write(`check: ${name} ok (${seconds} s)\n`);
  }
  return true;
}

try {
  const passed = await Promise.all(SIDE_BY_SIDE.map((steps) => run(steps, "pipe")));
  if (passed.includes(false) || !(await run(TESTS, "inherit"))) {
    process.exitCode = 1;
  }
} finally {
  rmSync(fresh, { recursive: true, force: true });
}
