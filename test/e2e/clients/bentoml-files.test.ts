/**
 * BentoML's service files, unmodified: the adapter beside `bentoml serve`, and BentoML's own
 * clients against `tessera serve`. The oldest version that runs, and the newest when this was
 * written; `TESSERA_BENTOML_VERSIONS=1.4.0,1.4.14,1.4.29` tries others.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { Program } from "../cli/program.ts";
import {
  type Environment,
  environment,
  pythonMissing,
  ROOT,
  run,
  TESSERA_COMMAND,
} from "./python-environment.ts";

const VERSIONS = (process.env.TESSERA_BENTOML_VERSIONS ?? "1.3.22,1.4.40").split(",");

/** What both versions need to serve, and what the services and tests of ours do. */
const PACKAGES = [
  "a2wsgi aiohttp aiohttp-asgi-connector aiosqlite attrs cattrs<23.2 click click-option-group",
  "cloudpickle deepmerge fs fsspec httpx httpx-ws inflection jinja2 kantoku numpy nvidia-ml-py",
  "opentelemetry-api opentelemetry-instrumentation-aiohttp-client opentelemetry-instrumentation-asgi",
  "opentelemetry-sdk packaging pandas pathspec pillow pip-requirements-parser prometheus-client",
  "psutil pydantic<3 pytest python-dateutil python-dotenv python-json-logger python-multipart",
  "pyyaml questionary rich rich-toolkit schema setuptools<81 simple-di starlette tomli-w uvicorn",
  "watchfiles",
].flatMap((line) => line.split(" "));

const PYTHON_CLIENT = join(ROOT, "clients/python");
const SERVICE = join(PYTHON_CLIENT, "tests/bentoml_files/eight.py");
const PROGRAM = join(ROOT, "test/e2e/clients/bentoml_files_program.py");

/** Compiled modules are kept: a cold import of these packages takes seconds, in each process. */
const COMPILED = {
  PYTHONDONTWRITEBYTECODE: "",
  PYTHONPYCACHEPREFIX: join(ROOT, "node_modules/.cache/python/bentoml-files-compiled"),
};

const ANSWERS = {
  text: "Grüezi Ada, Grüezi Ada",
  model: {
    name: "Ada",
    born: null,
    addresses: [{ street: "Bahnhofstrasse 1", city: "Zürich" }],
  },
  image: ["PNG", 3, 3],
  path: "ABC",
  array: [
    "ndarray",
    [
      [2, 4],
      [6, 8],
    ],
  ],
  table: ["DataFrame", [{ price: 1.5, count: 2, total: 3 }]],
  tokens: "to be or not ",
  depends: "hallo Welt",
  route: { a: 1 },
  count: { sum: 6, known: true, started: ["async", "sync"] },
};

const skipped = leftOut(pythonMissing);

describe.skipIf(skipped)(`BentoML's service files${skipped}`, () => {
  let made: Environment;
  beforeAll(async () => {
    const alone = Object.fromEntries(VERSIONS.map((each) => [each, `bentoml==${each}`]));
    made = await environment({ name: "bentoml-files", packages: PACKAGES, alone });
  }, 600_000);

  it.each(VERSIONS)(
    "of %s answer as bentoml serve does, byte for byte",
    async (version) => {
      const args = ["-W", "ignore", "-m", "pytest", "tests/bentoml_files", "-W", "ignore"];
      const env = { ...COMPILED, PYTHONPATH: made.beside(version), TESSERA_COMMAND };
      expect(await run(made.python, args, { cwd: PYTHON_CLIENT, env })).toMatch(/\d+ passed/);
    },
    420_000,
  );

  it("are run by as many processes as they say, unless the command line says another", async () => {
    const env = { ...COMPILED, PYTHONPATH: made.beside(VERSIONS.at(-1) ?? "") };
    const variables = Object.entries(env).flatMap(([name, value]) => ["--env", `${name}=${value}`]);
    const folder = mkdtempSync(join(tmpdir(), "tessera-workers-"));
    const path = join(folder, "counted.py");
    const served = async (declared: string, ...flags: string[]): Promise<string> => {
      const lines = ["import bentoml", `@bentoml.service(${declared})`, "class Counted:"];
      const method = ["    @bentoml.api", "    def one(self) -> int: return 1", ""];
      writeFileSync(path, [...lines, ...method].join("\n"));
      const python = ["--python", made.python, ...variables];
      const { program } = await Program.serve([path, ...python, ...flags]);
      await using _ = program;
      return /\(1 endpoint, (.*)\) on/.exec(program.stdout)?.[1] ?? "";
    };
    try {
      expect(await served("")).toBe("1 worker");
      expect(await served("workers=3")).toBe("3 workers");
      expect(await served("workers=3", "--workers", "2")).toBe("2 workers");
    } finally {
      rmSync(folder, { recursive: true });
    }
  }, 120_000);

  it.each(VERSIONS)(
    "of %s are served to BentoML's own clients",
    async (version) => {
      const env = { ...COMPILED, PYTHONPATH: made.beside(version) };
      const variables = Object.entries(env).flatMap(([name, value]) => [
        "--env",
        `${name}=${value}`,
      ]);
      const python = ["--python", made.python, ...variables];
      const { program, url } = await Program.serve([SERVICE, ...python]);
      await using _ = program;
      for (const kind of ["sync", "async"]) {
        const said = await run(made.python, ["-W", "ignore", PROGRAM, kind, url], { env });
        // The submit of this client fails on its own, when the task is stored.
        const isBroken = kind === "sync" && version === "1.4.40";
        const count = isBroken ? expect.stringContaining("_opened_files") : ANSWERS.count;
        expect({ kind, ...JSON.parse(said) }).toEqual({ kind, ...ANSWERS, count });
      }
    },
    120_000,
  );
});
