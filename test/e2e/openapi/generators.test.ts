/** Two generators of clients make whole clients of both OpenAPI documents, and these compile. */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OPENAPI_PATH } from "../../../scripts/http-reference.ts";
import { serveService } from "../../../src/app/serve.ts";
import { readServeConfig } from "../../../src/config/serve.ts";
import { leftOut } from "../../needed.ts";
import { goMissing, runGo } from "../clients/go-environment.ts";
import { environment, pythonMissing, run } from "../clients/python-environment.ts";

const SERVICE = fileURLToPath(new URL("service.ts", import.meta.url));
const OGEN = fileURLToPath(new URL("ogen/", import.meta.url));
const TOKEN = "a-token-of-the-test";
const GENERATOR = "openapi-python-client==0.29.1";
/** The first run fetches and compiles what the generators need. */
const TIMEOUT_MS = 300_000;

const DOCUMENTS = ["platform", "deployment"] as const;
type Name = (typeof DOCUMENTS)[number];

let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "tessera-test-openapi-"));
  cpSync(OPENAPI_PATH, pathOf("platform"));
  const { config } = readServeConfig(SERVICE, { port: "0", workers: "1" }, {});
  const served = await serveService({ ...config, logLevel: "silent" }, { token: TOKEN });
  try {
    const headers = { authorization: `Bearer ${TOKEN}` };
    const answer = await fetch(`http://127.0.0.1:${served.port}/docs.json`, { headers });
    writeFileSync(pathOf("deployment"), await answer.text());
  } finally {
    await served.stop();
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function pathOf(name: Name): string {
  return join(folder, `${name}.json`);
}

/** How many operations the document has. */
function operations(name: Name): number {
  const { paths } = JSON.parse(readFileSync(pathOf(name), "utf8")) as {
    readonly paths: { readonly [path: string]: object };
  };
  return Object.values(paths).flatMap((methods) => Object.keys(methods)).length;
}

const withoutPython = leftOut(pythonMissing);

/** Each module is compiled and loaded; and a task in a state of a later version is read. */
const USES_CLIENT = `
import importlib, json, pkgutil, sys
package = importlib.import_module(sys.argv[1])
names = [found.name for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
for name in names:
    importlib.import_module(name)
models = importlib.import_module(f"{package.__name__}.models")
kind = getattr(models, "TesseraTask", None) or models.Task
times = {"created_at": "2026-01-31T12:00:00Z", "expires_at": "2026-01-31T12:00:00Z"}
later = {"task_id": "t", "status": "paused", **times, "create_time": times["created_at"], "attempts": [], "tags": []}
print(json.dumps(kind.from_dict(later).status))
`;

describe.skipIf(withoutPython !== "")(`openapi-python-client${withoutPython}`, () => {
  it.each(DOCUMENTS)(
    "makes a client of every operation of the %s, which takes values that come later",
    async (name) => {
      const { python } = await environment({ name: "openapi-client", packages: [GENERATOR] });
      const made = join(folder, "python");
      const output = join(made, `of_${name}`);
      const said = await run(python, [
        ...["-m", "openapi_python_client", "generate", "--path", pathOf(name)],
        ...["--output-path", output, "--meta", "none", "--overwrite"],
      ]);
      expect(said).not.toContain("will not be generated");
      expect(said).not.toContain("removal of");
      const modules = readdirSync(join(output, "api"), { recursive: true, encoding: "utf8" });
      const own = modules.filter((path) => path.endsWith(".py") && !path.endsWith("__init__.py"));
      expect(own).toHaveLength(operations(name));
      const env = { PYTHONPATH: made, PYTHONDONTWRITEBYTECODE: "1" };
      expect(await run(python, ["-c", USES_CLIENT, `of_${name}`], { env })).toBe('"paused"\n');
    },
    TIMEOUT_MS,
  );
});

const withoutGo = leftOut(goMissing);

describe.skipIf(withoutGo !== "")(`ogen${withoutGo}`, () => {
  it.each(DOCUMENTS)(
    "makes a client of every operation of the %s, which compiles",
    async (name) => {
      const module = join(folder, `go-${name}`);
      cpSync(OGEN, module, { recursive: true });
      await runGo(
        "go",
        [
          ...["tool", "ogen", "--config", "ogen.yml", "--target", "api", "--package", "api"],
          pathOf(name),
        ],
        { cwd: module },
      );
      const client = readFileSync(join(module, "api/oas_client_gen.go"), "utf8");
      expect(client.match(/^func \(c \*Client\) [A-Z]/gm)).toHaveLength(operations(name));
      await runGo("go", ["build", "./..."], { cwd: module });
    },
    TIMEOUT_MS,
  );
});
