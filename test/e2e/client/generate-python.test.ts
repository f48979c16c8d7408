/** Generated clients in Python, as type checkers and programs see them. */
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { pythonClientSource, type ServiceSchema } from "../../../src/client/index.ts";
import { leftOut } from "../../needed.ts";
import { stripped } from "../../stripped.ts";
import { Program } from "../cli/program.ts";
import {
  type Environment,
  environment,
  pythonMissing,
  ROOT,
  run,
} from "../clients/python-environment.ts";

/** Modules, each of the service that it is generated from. */
const MODULES = {
  clients: "test/e2e/clients/service.ts",
  streamed: "test/fixtures/services/serve/streamed-tasks.ts",
  summarizer: "examples/summarizer/service.ts",
  digits: "examples/digits/service.ts",
};

/** Of a service that was made to break out of the text around its names. */
const HOSTILE: ServiceSchema = {
  name: 'a"""\nimport os',
  description: 'ends """ here \\',
  routes: [
    {
      name: "class",
      is_task: true,
      description: '"""',
      input: {
        type: "object",
        properties: {
          self: { type: "string", description: 'a\n"""b\\' },
          "x y": { type: ["string", "null"] },
          x_y: { type: "integer" },
          "2": { enum: ["a", 1, null, true] },
          '"\\': { enum: [1.5, 2] },
          list: { type: "array", items: { type: "array", items: { type: "number" } } },
          deep: {
            type: "object",
            properties: {
              "a-b": { type: "string", description: "x\n)" },
              str: { type: "integer" },
            },
            required: ["a-b"],
          },
          __mangled: {},
        },
        required: ["x y"],
      },
      output: { type: "object", additionalProperties: { type: "integer" } },
    },
    { name: "close", is_task: false, input: {}, output: { type: "file" } },
    { name: "class_", is_task: false, input: {}, output: { type: "string", is_stream: true } },
    { name: "é", is_task: false, input: {}, output: {} },
  ],
};

const skipped = leftOut(pythonMissing);

describe.skipIf(skipped)(`a generated client in Python${skipped}`, () => {
  let made: Environment;
  let folder: string;
  let servers: Record<string, Awaited<ReturnType<typeof Program.serve>>> = {};
  const path = () => ({ PYTHONPATH: `${join(ROOT, "clients/python/src")}:${folder}` });
  const generate = (from: string, output: string) => {
    const entry = stripped("test/e2e/cli/entry.ts");
    const args = ["client", "generate", servers[from]?.url ?? "", "--language", "python"];
    return run(process.execPath, [entry, ...args, "--output", output]);
  };

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "tessera-generated-python-"));
    const packages = ["anyio>=4", "httpx>=0.27,<1", "mypy>=1.15", "numpy", "pandas"];
    made = await environment({ name: "generated", packages });
    for (const [name, service] of Object.entries(MODULES)) {
      servers = { ...servers, [name]: await Program.serve([join(ROOT, service)]) };
      await generate(name, join(folder, name === "digits" ? name : `${name}.py`));
    }
    copyFileSync(
      fileURLToPath(new URL("generated_program.py", import.meta.url)),
      join(folder, "program.py"),
    );
    writeFileSync(join(folder, "hostile.py"), pythonClientSource(HOSTILE));
  }, 300_000);
  afterAll(async () => {
    await Promise.all(Object.values(servers).map(({ program }) => program[Symbol.asyncDispose]()));
    rmSync(folder, { recursive: true, force: true });
  });

  it("is a module, or a package that carries its types", () => {
    expect(existsSync(join(folder, "digits/py.typed"))).toBe(true);
    expect(readFileSync(join(folder, "digits/__init__.py"), "utf8")).toContain(
      "class DigitsClient",
    );
  });

  it("calls the service, with threads and with asyncio", async () => {
    const urls = [servers.clients?.url ?? "", servers.streamed?.url ?? ""];
    const said = await run(made.python, ["program.py", ...urls], { cwd: folder, env: path() });
    expect(JSON.parse(said)).toEqual([
      ["Hello Ada!", 3.5, "Hello Bob!Hello Bob!", true, "p.png", 3],
      [["a", "b"], "ab", true],
      ["Hello Ada!Hello Ada!", 3, ["a"]],
    ]);
  }, 60_000);

  it("is refused by mypy where names or types are wrong, and nowhere else", async () => {
    const cache = join(folder, "mypy");
    // A marked line that passes is an error of its own: the mark is not used.
    const files = ["program.py", "hostile.py", ...Object.keys(MODULES)].map((name) =>
      existsSync(join(folder, `${name}.py`)) ? `${name}.py` : name,
    );
    // As for an installed package, whose own imports are not looked at.
    const silent = ["--strict", "--follow-imports", "silent", "--cache-dir", cache];
    const args = ["-m", "mypy", ...silent, ...files];
    const env = { MYPYPATH: join(ROOT, "clients/python/src") };
    const said = await run(made.python, args, { cwd: folder, env });
    expect(said).toMatch(/^Success: no issues found/);
    const wrong = "from clients import ClientsClient\nClientsClient('').great(nam=1)\n";
    writeFileSync(join(folder, "wrong.py"), wrong);
    await expect(
      run(made.python, ["-m", "mypy", "--cache-dir", cache, "wrong.py"], { cwd: folder, env }),
    ).rejects.toThrow(/"ClientsClient" has no attribute "great".*attr-defined/);
  }, 120_000);

  it("is refused by pyright where names or types are wrong, and nowhere else", async () => {
    const settings = {
      include: ["*.py", "digits"],
      exclude: ["wrong.py", "arrays.py"],
      extraPaths: [join(ROOT, "clients/python/src")],
      typeCheckingMode: "strict",
      enableTypeIgnoreComments: true,
      reportUnnecessaryTypeIgnoreComment: "error",
      // Results without a schema are of any type.
      reportUnknownVariableType: false,
    };
    writeFileSync(join(folder, "pyrightconfig.json"), JSON.stringify(settings));
    const pyright = join(ROOT, "node_modules/.bin/pyright");
    const said = await run(pyright, ["--pythonpath", made.python, "-p", folder]);
    expect(said).toMatch(/^0 errors, 0 warnings/m);
  }, 120_000);

  it("is written for names and words of any kind", async () => {
    const program = [
      "import hostile, typing",
      "print(typing.get_type_hints(hostile.ClassDeep))",
      "print(hostile.AImportOsClient.class_, hostile.AImportOsClient.close_)",
    ].join("\n");
    const said = await run(made.python, ["-c", program], { cwd: folder, env: path() });
    expect(said).toMatch(/^\{'a-b': <class 'str'>, 'str': .*\n<property .* <property/);
  });

  it("takes arrays and tables where the function takes lists", async () => {
    const program = [
      "import numpy, pandas, sys",
      "from clients import ClientsClient",
      "client = ClientsClient(sys.argv[1])",
      "print(client.add(numbers=numpy.array([1, 2.5])), client.add(numbers=pandas.Series([4])))",
    ].join("\n");
    writeFileSync(join(folder, "arrays.py"), program);
    const args = ["arrays.py", servers.clients?.url ?? ""];
    expect(await run(made.python, args, { cwd: folder, env: path() })).toBe("3.5 4\n");
    const env = { MYPYPATH: join(ROOT, "clients/python/src") };
    const cache = join(folder, "mypy");
    const silent = ["--follow-imports", "silent", "--ignore-missing-imports"];
    const mypy = ["-m", "mypy", "--cache-dir", cache, ...silent];
    await run(made.python, [...mypy, "arrays.py"], { cwd: folder, env });
  }, 120_000);
});
