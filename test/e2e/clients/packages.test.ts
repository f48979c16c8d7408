/** Both packages are ready for their registries. */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { version } from "../../../src/version.ts";
import { leftOut } from "../../needed.ts";
import { environment, pythonMissing, ROOT, run } from "./python-environment.ts";

/** Packages come from the registry. */
const INSTALL_MS = 240_000;

it("npm would publish it without a warning, small, and with nothing that only developers need", async () => {
  // `npm ci` has built dist/, which other tests use: publishing must not build it anew.
  const args = ["publish", "--dry-run", "--json", "--ignore-scripts", "--provenance=false"];
  const { stdout, stderr } = await promisify(execFile)("npm", args, {
    cwd: ROOT,
    maxBuffer: 64 * 1024 ** 2,
  });
  const said = stderr.split("\n").filter((line) => /npm (?:warn|error)/i.test(line));
  // Nobody is logged in to a registry here.
  expect(said.filter((line) => !line.includes("requires you to be logged in"))).toEqual([]);
  const published = JSON.parse(stdout);
  const { size, files } = published["tessera-platform"] ?? published;
  const paths: string[] = files.map(({ path }: { path: string }) => path);
  expect(paths).toContain("templates/typescript/gitignore");
  expect(paths).toContain("clients/python/src/tessera/__init__.py");
  expect(paths).toContain("dist/console/app/index.html");
  const foreign =
    /(?:^|\/)(?:node_modules|__pycache__|\.venv)\/|\.test\.js$|^(?:src|test|scripts|bench|docs)\//;
  expect(paths.filter((path) => foreign.test(path))).toEqual([]);
  // The documentation, which the platform serves offline, is about two fifths of it.
  expect(size).toBeLessThan(6.25 * 1024 ** 2);
});

const without = leftOut(pythonMissing);

it.skipIf(without)(
  `the package for Python builds, and its description and metadata are right${without}`,
  async () => {
    const { python } = await environment({
      name: "publish",
      packages: ["build", "hatchling", "twine"],
    });
    const output = mkdtempSync(join(tmpdir(), "tessera-wheel-"));
    try {
      const source = join(ROOT, "clients/python");
      await run(python, ["-m", "build", "--no-isolation", "--outdir", output, source]);
      const files = ["whl", "tar.gz"].map((end) =>
        join(output, `tessera_platform-${version}${end === "whl" ? "-py3-none-any" : ""}.${end}`),
      );
      const said = await run(python, ["-m", "twine", "check", "--strict", ...files]);
      expect(said).not.toMatch(/WARNING|FAILED/);
      const [wheel = ""] = files;
      const list = await run(python, ["-m", "zipfile", "--list", wheel]);
      expect(list).toContain("tessera/py.typed");
      expect(list).toContain("licenses/LICENSE");
      expect(list).not.toMatch(/^tests?\//m);
      const readme = readFileSync(join(source, "README.md"), "utf8");
      expect(readme).toMatch(/^# tessera-platform\n\n```sh\npip install tessera-platform\n/);
    } finally {
      rmSync(output, { recursive: true });
    }
  },
  INSTALL_MS,
);
