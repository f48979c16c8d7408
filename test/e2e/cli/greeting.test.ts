import { execFile } from "node:child_process";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { greeting } from "../../../src/cli/serve/greeting.ts";
import { readServeConfig } from "../../../src/config/serve.ts";
import type { EndpointManifest } from "../../../src/protocol/manifest.ts";
import { exampleOf } from "../../../src/service/openapi/example.ts";
import { databaseUrl } from "../../storage/postgres/databases.ts";
import { get } from "./calling.ts";
import { Program } from "./program.ts";

const SUMMARIZER = fileURLToPath(
  new URL("../../../examples/summarizer/service.ts", import.meta.url),
);
const TOKEN = "a token's `$worth`".replaceAll(" ", "-");

/** The lines that the greeting offers, run by a shell. */
async function paste(stdout: string, env: NodeJS.ProcessEnv = {}): Promise<string> {
  const script = stdout.split("\n").filter((line) => /^ {2}(?:curl|task_id=)/.test(line));
  expect(script).toHaveLength(4);
  // A line end after each answer: on a screen they are apart anyway.
  const commands = script.map((line) => `${line}\necho`).join("\n");
  const options = { env: { PATH: process.env.PATH, ...env } };
  return (await promisify(execFile)("sh", ["-ec", commands], options)).stdout;
}

describe("the greeting of the summarizer", { timeout: 30_000 }, () => {
  let program: Program;
  let url: string;

  beforeAll(async () => {
    ({ program, url } = await Program.serve([SUMMARIZER]));
  }, 30_000);
  afterAll(() => program[Symbol.asyncDispose]());

  it("says that memory is for development, and the real port", async () => {
    const { port } = new URL(url);
    expect(Number(port)).toBeGreaterThan(0);
    expect(program.stdout).toContain(`Tessera serves summarizer (2 endpoints, `);
    expect(program.stdout).toMatch(/storage +memory, for development: .* --database/);
    expect(program.stdout).toMatch(/callers +need no token/);
    expect(program.stdout).toContain(`gRPC      localhost:${port} `);
  });

  it("names paths that are there", async () => {
    const urls = [...program.stdout.matchAll(/^ {2}(?:page|OpenAPI|schema) +(\S+)$/gm)];
    expect(urls).toHaveLength(3);
    for (const [, path = ""] of urls) {
      expect((await get(path.replace("localhost", "127.0.0.1"))).status).toBe(200);
    }
  });

  it("offers lines that work as they are pasted", async () => {
    const [call, submitted, status, result] = (await paste(program.stdout)).split("\n");
    expect(call).not.toBe("");
    expect(submitted).toBe("");
    expect(JSON.parse(status ?? "")).toMatchObject({ task_id: expect.any(String) });
    expect(JSON.parse(result ?? "")).toEqual([call]);
  });
});

describe("the greeting of a server with a token", { timeout: 30_000 }, () => {
  it("offers lines that take it from the environment, and does not show it", async () => {
    const env = { TESSERA_TOKEN: TOKEN };
    const { program, url } = await Program.serve([SUMMARIZER], { env });
    await using _ = program;
    expect(program.stdout).not.toContain(TOKEN);
    expect(program.stdout).toMatch(/callers +need the token/);
    expect((await get(`${url}/schema.json`)).status).toBe(401);
    const [call, , , result] = (await paste(program.stdout, env)).split("\n");
    expect(JSON.parse(result ?? "")).toEqual([call]);
  });
});

it("offers lines for a token that came as a flag, which a log does not show", async () => {
  const { program } = await Program.serve([SUMMARIZER, "--token", TOKEN]);
  await using _ = program;
  expect(program.stdout).not.toContain(TOKEN);
  expect(program.stdout).toMatch(/Try it:\n\n {2}export TESSERA_TOKEN='<the token>'\n\n {2}curl /);
}, 30_000);

it("shows no password of a database, nor does the log of a server in its service's folder", async () => {
  const database = await databaseUrl();
  const { hostname, port, password } = new URL(database);
  const { program } = await Program.serve([SUMMARIZER, "--database", database], {
    cwd: dirname(SUMMARIZER),
  });
  await using _ = program;
  const { stdout, stderr } = await program.stop();
  expect(stdout).toContain(`@${hostname}:${port}/`);
  expect(stdout + stderr).not.toContain(`:${password}@`);
  expect(stderr).not.toContain("the database lies in");
}, 60_000);

describe("a greeting", () => {
  const pages: EndpointManifest = {
    name: "scan",
    kind: "task",
    input: {
      type: "object",
      properties: { page: {}, note: { type: "string", examples: ["it's"] } },
      required: ["page", "note"],
    },
    output: {},
    files: { page: { array: false, contentType: "image/png" } },
  } as unknown as EndpointManifest;

  function greet(
    flags: { host?: string; database?: string; workers?: string },
    endpoints: EndpointManifest[] = [],
    url = "http://localhost:4100",
    asked?: number,
  ) {
    const { config } = readServeConfig("service.ts", flags, {});
    const manifest = { name: "scanner", endpoints, ...(asked && { workers: asked }) };
    const workers = config.workers ?? asked ?? config.defaultWorkers;
    const storedIn = config.database;
    const served = { manifest, workers, storedIn, url, stop: async () => {} };
    return greeting(served as never, { config, token: undefined, exampleOf });
  }

  it.each([
    ["http://localhost:4100", "localhost:4100"],
    ["http://[2001:db8::7]:4100", "[2001:db8::7]:4100"],
  ])("names the address %s of the server everywhere", (url, host) => {
    const said = greet({}, [], url);
    expect(said).toContain(`page      ${url}/\n`);
    expect(said).toContain(`gRPC      ${host} (`);
  });

  it("tells the shell a token that it does not know, quoted", async () => {
    const { config } = readServeConfig("service.ts", {}, {});
    const served = {
      manifest: { name: "scanner", endpoints: [pages] },
      url: "http://localhost:1",
      stop: async () => {},
    };
    const shown = (toExport: string | undefined) =>
      greeting(served as never, { config, token: { toExport }, exampleOf });
    expect(shown(undefined)).not.toContain("export");
    const line = /^ {2}(export .*)$/m.exec(shown(TOKEN))?.[1];
    const script = `${line}; printf %s "$TESSERA_TOKEN"`;
    expect((await promisify(execFile)("sh", ["-ec", script])).stdout).toBe(TOKEN);
  });

  it("says how many workers the service asks for, where nobody else does", () => {
    const url = "http://localhost:4100";
    const said = greet({}, [], url, 1);
    expect(said).toMatch(/^Tessera serves scanner \(0 endpoints, 1 worker\)/);
    expect(said).toContain("workers   1, as the service says; --workers sets another number\n");
    const chosen = greet({ workers: "3" }, [], url, 1);
    expect(chosen).toMatch(/^Tessera serves scanner \(0 endpoints, 3 workers\)/);
    expect(chosen).not.toContain("as the service says");
  });

  it("says that an image and system packages are for deployments", () => {
    const { config } = readServeConfig("service.ts", {}, {});
    const manifest = { name: "scanner", endpoints: [], image: "debian:12", packages: ["ffmpeg"] };
    const served = { manifest, url: "http://localhost:1", stop: async () => {} };
    const said = greeting(served as never, { config, token: undefined, exampleOf });
    expect(said).toContain(
      "image     debian:12 when it is deployed; here it has the programs of this machine: tessera start, and tessera deploy to it, run it in its image\n",
    );
    expect(said).toContain(
      "packages  ffmpeg when it is deployed; here it has those of this machine: apt install ffmpeg\n",
    );
  });

  it("names the file that keeps the tasks", () => {
    expect(greet({ database: "./tasks.db" })).toMatch(/storage +\.\/tasks\.db\n/);
  });

  it("offers a form for endpoints that take files", () => {
    expect(greet({}, [pages])).toContain(`/scan/submit -F page=@file.png -F 'note=it'\\''s' |`);
  });
});
