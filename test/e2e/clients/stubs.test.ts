/** gRPC clients in other languages: generated stubs and reflection, by the programs of docs/grpc.md and docs/go.md. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { generateStubs, pythonForGrpc } from "../../../scripts/generate-clients.ts";
import { leftOut } from "../../needed.ts";
import { Program } from "../cli/program.ts";
import { goMissing, grpcurl, runGo } from "./go-environment.ts";
import { pythonMissing, ROOT, run } from "./python-environment.ts";

const GRPCURL = "v1.9.4";

/** Cold caches mean that Go compiles gRPC. */
const BUILD_MS = 400_000;

const withoutPython = leftOut(pythonMissing);
const withoutGo = leftOut(goMissing);

/** A program of a page, with what its first line serves and what the page says that it prints. */
interface Shown {
  readonly program: string;
  readonly service: string;
  readonly token: string;
  readonly prints: string;
}

function shown(page: string, language: string): Shown {
  const text = readFileSync(join(ROOT, "docs", page), "utf8");
  const found = [...text.matchAll(/```(\w+)\n([^`]*)```\n\n```text\n([^`]*)```/g)];
  const [, , program = "", prints = ""] = found.find(([, name]) => name === language) ?? [];
  const [, service = "", token = ""] = /tessera serve (\S+) --token (\S+)\n/.exec(program) ?? [];
  return { program, service, token, prints };
}

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "tessera-stubs-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("writes no stubs for a language that it does not know, and says which it knows", async () => {
  const script = join(ROOT, "scripts/generate-clients.ts");
  await expect(run(process.execPath, [script, "rust", "--output", folder])).rejects.toThrow(
    'there is no "rust", only go, python-grpc',
  );
});

/** Serves what a program calls, for as long as `use` takes. */
async function serving(
  { service, token }: Shown,
  use: (env: Record<string, string>) => Promise<void>,
): Promise<void> {
  const { program, url } = await Program.serve([join(ROOT, service), "--token", token]);
  await using _ = program;
  await use({ TESSERA_ADDRESS: new URL(url).host, TESSERA_TOKEN: token, no_proxy: "127.0.0.1" });
}

describe.skipIf(withoutPython)(`Python with generated stubs${withoutPython}`, () => {
  const page = shown("grpc.md", "python");
  let python: string;
  let stubs: string;
  let path: string;
  beforeAll(async () => {
    stubs = join(folder, "python-grpc");
    await generateStubs("python-grpc", stubs);
    ({ python } = await pythonForGrpc());
    path = join(folder, "program.py");
    writeFileSync(path, page.program);
  }, BUILD_MS);

  it("submits, watches and fetches with a token, as docs/grpc.md shows", () =>
    serving(page, async (env) => {
      const PYTHONPATH = join(stubs, "gen");
      expect(await run(python, [path], { env: { ...env, PYTHONPATH } })).toBe(page.prints);
    }));

  it.each([
    ["before", (own: string, gen: string) => [own, gen]],
    ["after", (own: string, gen: string) => [gen, own]],
  ])(
    "shares the package tessera with our client, which is %s it in the path",
    async (_, order) => {
      const { python: both } = await pythonForGrpc(["anyio>=4", "httpx>=0.27,<1"]);
      const paths = order(join(ROOT, "clients/python/src"), join(stubs, "gen"));
      const imports = [
        "from tessera import SyncHTTPClient",
        "from tessera.v1 import task_pb2, task_pb2_grpc",
        "print(SyncHTTPClient.__name__, task_pb2_grpc.TaskServiceStub.__name__)",
      ];
      const env = { PYTHONPATH: paths.join(delimiter) };
      expect(await run(both, ["-c", imports.join("\n")], { env })).toBe(
        "SyncHTTPClient TaskServiceStub\n",
      );
    },
    BUILD_MS,
  );

  it("is refused with another token", () =>
    serving(page, async (env) => {
      const wrong = { ...env, PYTHONPATH: join(stubs, "gen"), TESSERA_TOKEN: "somebody-elses" };
      await expect(run(python, [path], { env: wrong })).rejects.toThrow("UNAUTHENTICATED");
    }));
});

describe.skipIf(withoutGo)(`Go with generated stubs${withoutGo}`, () => {
  const page = shown("go.md", "go");
  let program: string;
  beforeAll(async () => {
    const stubs = join(folder, "go");
    const shop = join(folder, "shop");
    await generateStubs("go", stubs);
    cpSync(join(stubs, "gen"), shop, { recursive: true });
    for (const name of ["go.mod", "go.sum"]) {
      cpSync(join(ROOT, "clients/go", name), join(shop, name));
    }
    writeFileSync(join(shop, "main.go"), page.program);
    program = join(folder, "program");
    await runGo("go", ["mod", "edit", "-module", "example.com/shop"], { cwd: shop });
    await runGo("go", ["build", "-mod=readonly", "-o", program, "."], { cwd: shop });
    expect(await runGo("gofmt", ["-l", "main.go"], { cwd: shop })).toBe("");
  }, BUILD_MS);

  it("submits, watches and fetches with a token, as docs/go.md shows", () =>
    serving(page, async (env) => {
      expect(await run(program, [], { env })).toBe(page.prints);
    }));

  it("is refused with another token", () =>
    serving(page, async (env) => {
      const wrong = { ...env, TESSERA_TOKEN: "somebody-elses" };
      await expect(run(program, [], { env: wrong })).rejects.toThrow("Unauthenticated");
    }));
});

describe.skipIf(withoutGo)(`grpcurl${withoutGo}`, () => {
  const page = shown("grpc.md", "sh");
  let path: string;
  beforeAll(async () => {
    path = [await grpcurl(GRPCURL), process.env.PATH].join(delimiter);
  }, BUILD_MS);

  it("lists, describes and calls by reflection, unary and streaming, as docs/grpc.md shows", () =>
    serving(page, async (env) => {
      const args = ["-e", "-o", "pipefail", "-c", page.program];
      expect(await run("bash", args, { cwd: folder, env: { ...env, PATH: path } })).toBe(
        page.prints,
      );
    }));

  it("describes every service that it lists", () =>
    serving(page, async ({ TESSERA_ADDRESS = "" }) => {
      const token = `authorization: Bearer ${page.token}`;
      const ask = (...args: string[]) =>
        run("grpcurl", ["-plaintext", "-H", token, TESSERA_ADDRESS, ...args], {
          env: { PATH: path },
        });
      const services = (await ask("list")).trim().split("\n");
      expect(services).toContain("tessera.v1.TaskService");
      for (const service of services) {
        expect(await ask("describe", service)).toContain(`${service} is a service:`);
      }
    }));
});
