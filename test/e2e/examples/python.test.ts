/** The examples in Python: their own tests, with the packages that each names. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { PYTHON_EXAMPLES } from "../../../scripts/start-python.ts";
import { leftOut } from "../../needed.ts";
import { environment, pythonMissing, ROOT, run } from "../clients/python-environment.ts";

/** Those that `npm start` serves, and those that need weights or programs besides. */
const NAMES = [...PYTHON_EXAMPLES.map(({ name }) => name), "generator", "speech"];

/** The newest Python for which there are wheels of all. */
const NEWEST = Math.min(...PYTHON_EXAMPLES.map(({ versions }) => versions.newest));

/** With what it asks for, because the examples name all of their packages, and no other. */
const PYTEST = [
  "exceptiongroup",
  "iniconfig",
  "packaging",
  "pluggy",
  "pygments",
  "pytest",
  "tomli",
];

function tooNew(): string | undefined {
  const fits = `import sys; sys.exit(sys.version_info[:2] > (3, ${NEWEST}))`;
  return spawnSync("python3", ["-c", fits]).status === 0
    ? undefined
    : `python3 is newer than 3.${NEWEST}`;
}

function required(name: string): string[] {
  const text = readFileSync(join(ROOT, `examples/${name}/requirements.txt`), "utf8");
  return text.split("\n").filter((line) => /^[^#\s]/.test(line));
}

const skipped = leftOut(pythonMissing ?? tooNew());

describe.skipIf(skipped)(`the examples in Python${skipped}`, () => {
  let python: string;
  beforeAll(async () => {
    // They share an environment, and so the versions of what both need.
    const packages = ["--no-deps", ...new Set(NAMES.flatMap(required)), ...PYTEST];
    ({ python } = await environment({ name: "examples", packages }));
  }, 300_000);

  it.each(NAMES)("%s passes its tests", async (name) => {
    const args = ["-m", "pytest", "-q", "-p", "no:cacheprovider", `examples/${name}`];
    const env = { PYTHONPATH: join(ROOT, "clients/python/src") };
    expect(await run(python, args, { env })).toMatch(/\d+ passed/);
  });

  it.each(PYTHON_EXAMPLES)("$name needs as many packages as npm start says", (example) => {
    expect(required(example.name)).toHaveLength(example.packages);
  });
});
