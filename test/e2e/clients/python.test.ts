/** The Python client: its own suite, its types, its package, and its page of the documentation. */
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { Program } from "../cli/program.ts";
import { artifact, World } from "../hosting/world.ts";
import {
  type Environment,
  environment,
  pythonMissing,
  ROOT,
  run,
  TESSERA_COMMAND,
} from "./python-environment.ts";

const CLIENT = join(ROOT, "clients/python");

/** What the client's package says that it needs, its tests included, and what installs it. */
const PACKAGES = [
  "anyio>=4",
  "hatchling>=1.26",
  "httpx>=0.27,<1",
  "mypy>=1.15",
  "numpy",
  "opentelemetry-api",
  "pandas",
  "pillow",
  "pip",
  "pyarrow",
  "pydantic>=2",
  "pytest>=8",
  "ruff~=0.17.5",
  "trio>=0.26",
];

/** A program of the page, with the service that its first line says it is for, or the platform. */
interface Shown {
  /** Empty for a program that calls the platform. */
  readonly service: string;
  /** Where a client is generated to, if the page says so. */
  readonly generated: string | undefined;
  readonly program: string;
  /** What the page says that it prints. */
  readonly prints: string;
}

function programs(): Shown[] {
  const page = readFileSync(join(ROOT, "docs/python.md"), "utf8");
  const blocks = page.matchAll(
    /```python\n(?<program>[\s\S]*?)```\n\n```text\n(?<prints>[\s\S]*?)```/g,
  );
  return [...blocks].map(({ groups = {} }) => {
    const { program = "", prints = "" } = groups;
    const service = /^# npx tessera serve (\S+)/.exec(program)?.[1] ?? "";
    const generated = /^# npx tessera client generate \S+ --language python --output (\S+)$/m;
    return { service, generated: generated.exec(program)?.[1], program, prints };
  });
}

const skipped = leftOut(pythonMissing);

describe.skipIf(skipped)(`the Python client${skipped}`, () => {
  let made: Environment;
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "tessera-python-"));
    made = await environment({ name: "client", packages: PACKAGES });
  }, 300_000);
  afterAll(() => rm(folder, { recursive: true, force: true }));

  // In one process, whose server they share. The services of BentoML have a file of their own.
  it("passes its suite", async () => {
    const args = ["-m", "pytest", "--ignore", "tests/bentoml_files"];
    const said = await run(made.python, args, { cwd: CLIENT, env: { TESSERA_COMMAND } });
    expect(said).toMatch(/\d+ passed/);
  }, 900_000);

  it("is formatted and linted", async () => {
    await run(made.python, ["-m", "ruff", "format", "--no-cache", "--check"], { cwd: CLIENT });
    await run(made.python, ["-m", "ruff", "check", "--no-cache"], { cwd: CLIENT });
  });

  it("has types that hold, strictly", async () => {
    const cache = join(folder, "mypy");
    const said = await run(made.python, ["-m", "mypy", "--cache-dir", cache], { cwd: CLIENT });
    expect(said).toMatch(/^Success: no issues found/);
  }, 120_000);

  it("has types that pyright understands too", async () => {
    const pyright = join(ROOT, "node_modules/.bin/pyright");
    const said = await run(pyright, ["--pythonpath", made.python], { cwd: CLIENT });
    expect(said).toMatch(/^0 errors, 0 warnings/m);
  }, 120_000);

  it("has no names for pyright that are not there", async () => {
    const program = join(folder, "names.py");
    await writeFile(program, "import tessera\nfrom tessera import Nope, api\n\ntessera.nope\n");
    const pyright = join(ROOT, "node_modules/.bin/pyright");
    const checked = run(pyright, ["--pythonpath", made.python, program], { cwd: CLIENT });
    await expect(checked).rejects.toThrow(
      /"Nope" is unknown import symbol[\s\S]*"nope" is not a known attribute[\s\S]*\n2 errors,/,
    );
  }, 120_000);

  it("is a package that installs, with its types", async () => {
    const installed = join(folder, "installed");
    const options = ["--quiet", "--no-deps", "--no-build-isolation", "--target", installed];
    await run(made.python, ["-m", "pip", "install", ...options, CLIENT]);
    const program = [
      "import tessera, pathlib",
      "print(tessera.__version__, pathlib.Path(tessera.__file__).with_name('py.typed').exists())",
    ].join("\n");
    const env = { PYTHONPATH: installed };
    expect(await run(made.python, ["-c", program], { env, cwd: folder })).toMatch(/^\S+ True\n$/);
  }, 120_000);

  describe("docs/python.md", () => {
    it("shows programs, and each with what it prints", () => {
      const page = readFileSync(join(ROOT, "docs/python.md"), "utf8");
      expect(programs()).toHaveLength(page.split("```python").length - 1);
      expect(programs().length).toBeGreaterThanOrEqual(3);
    });

    it.each(programs().filter(({ service }) => service !== ""))(
      "a program for $service works as it stands there",
      async (shown) => {
        const { program: server, url } = await Program.serve([join(ROOT, shown.service)]);
        await using _ = server;
        const path = join(folder, "program.py");
        await writeFile(path, shown.program);
        if (shown.generated !== undefined) {
          const output = ["--language", "python", "--output", join(folder, shown.generated)];
          await new Program(["client", "generate", url, ...output]).ended;
        }
        const env = { TESSERA_URL: url, PYTHONPATH: join(CLIENT, "src") };
        expect(await run(made.python, [path], { env })).toBe(shown.prints);
      },
      120_000,
    );

    it.each(programs().filter(({ service }) => service === ""))(
      "a program for the platform works as it stands there",
      async ({ program, prints }) => {
        expect(program).toMatch(/^# npx tessera start\n/);
        await using world = await World.start();
        await world.deployed("echo", await artifact());
        const { value } = await world.platform.createToken(world.cookie, {
          access: ["developer_operations", "protected_endpoint"],
          all_deployments: true,
        });
        const path = join(folder, "program.py");
        await writeFile(path, program);
        const env = {
          PYTHONPATH: join(CLIENT, "src"),
          SERVICE_CLOUD_API_ENDPOINT: world.platform.url,
          SERVICE_CLOUD_API_KEY: value,
        };
        expect(await run(made.python, [path], { env })).toBe(prints);
      },
      120_000,
    );
  });
});
