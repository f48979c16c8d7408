/** The package of the client alone, as somebody installs it who has nothing else. */
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { build as esbuild } from "esbuild";
import { build as vite } from "vite";
import { afterAll, beforeAll, expect, it } from "vitest";
import { buildClient } from "../../../packaging/client/build.ts";
import { version } from "../../../src/version.ts";
import { Program } from "../cli/program.ts";
import { ROOT } from "../clients/python-environment.ts";

/** Packages that an installation has, this one among them. */
const MAX_PACKAGES = 6;
const MAX_INSTALLED_BYTES = 6_000_000;

const README = readFileSync(join(ROOT, "packaging/client/README.md"), "utf8");
const [, example = ""] = /```ts\n([\s\S]*?)```/.exec(README) ?? [];
const TSC = join(ROOT, "node_modules/typescript/bin/tsc");

const run = promisify(execFile);

let folder: string;
let packed: string;
let server: Program;
let url: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "tessera-client-package-"));
  packed = await buildClient(join(folder, "packed"));
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  await run("npm", ["install", packed], { cwd: folder });
  const service = join(import.meta.dirname, "service.ts");
  ({ program: server, url } = await Program.serve([service]));
}, 120_000);
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs a module beside the installed package; resolves with what it prints. */
async function runModule(name: string, source: string): Promise<string> {
  writeFileSync(join(folder, name), source);
  const env = { ...process.env, TESSERA_URL: url };
  return (await run(process.execPath, [name], { cwd: folder, env })).stdout;
}

it("brings few packages and bytes", () => {
  const modules = join(folder, "node_modules");
  const lock = JSON.parse(readFileSync(join(modules, ".package-lock.json"), "utf8"));
  const packages = Object.keys(lock.packages);
  expect(packages).toContain("node_modules/tessera-platform-client");
  expect(packages.length).toBeLessThanOrEqual(MAX_PACKAGES);
  const files = readdirSync(modules, { recursive: true, encoding: "utf8" });
  const bytes = files.map((file) => statSync(join(modules, file)).size);
  expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThan(MAX_INSTALLED_BYTES);
  const own = join(modules, "tessera-platform-client");
  expect(JSON.parse(readFileSync(join(own, "package.json"), "utf8"))).toMatchObject({ version });
  expect(readdirSync(own).sort()).toEqual(["LICENSE", "README.md", "dist", "gen", "package.json"]);
});

it("is packed and installed under the name that the page says", () => {
  const page = readFileSync(join(ROOT, "docs/typescript.md"), "utf8");
  expect(page).toContain(`npm run package:client        # packaging/out/${basename(packed)}\n`);
  expect(page).toContain(`npm install ../tessera/packaging/out/${basename(packed)}\n`);
});

it("calls an api, a task and a stream of a served service, as its README says", async () => {
  expect(await runModule("example.ts", example)).toBe("Hello, Ada!\n6\nword 1\nword 2\nword 3\n");
});

it("calls the services of the platform's API", async () => {
  const printed = await runModule(
    "platform.ts",
    `import { createTesseraClient } from "tessera-platform-client";
const { endpoints } = createTesseraClient({ url: process.env.TESSERA_URL ?? "" });
const input = { case: "arguments", value: { name: "Bo" } } as const;
const { result } = await endpoints.callEndpoint({ endpoint: "greet", input });
console.log(JSON.stringify(result));
`,
  );
  expect(printed).toContain("Hello, Bo!");
});

it("is what a generated client imports where it is installed, with the types of the service", async () => {
  const { stdout } = await run(
    process.execPath,
    [join(ROOT, "bin/tessera.js"), "client", "generate", url, "--output", "greeter.ts"],
    { cwd: folder },
  );
  expect(stdout).toBe("");
  expect(readFileSync(join(folder, "greeter.ts"), "utf8")).toContain(
    '} from "tessera-platform-client";',
  );
  const source = `import { createClient } from "./greeter.ts";
const client = createClient({ url: process.env.TESSERA_URL ?? "" });
const sum: number = await (await client.add.submit({ numbers: [1] })).wait();
// @ts-expect-error: an api cannot be submitted
client.greet.submit;
console.log(sum, await client.greet({ name: "Cy" }));
`;
  expect(await runModule("generated.ts", source)).toBe("1 Hello, Cy!\n");
  // Without Node's types, and with the declarations of the packages checked, too.
  writeFileSync(
    join(folder, "env.d.ts"),
    "declare const process: { env: Record<string, string> };",
  );
  const options =
    "--noEmit --strict --module nodenext --target es2024 --lib es2024,dom,dom.iterable";
  const files = ["env.d.ts", "example.ts", "generated.ts", "platform.ts"];
  const args = [TSC, ...options.split(" "), "--allowImportingTsExtensions", ...files];
  await run(process.execPath, args, { cwd: folder }).catch((err) => expect.fail(err.stdout));
});

it("has nothing of Node's in a browser's bundle", async () => {
  const entry = join(folder, "page.js");
  writeFileSync(
    entry,
    'import * as tessera from "tessera-platform-client";\nglobalThis.tessera = tessera;\n',
  );
  const { metafile } = await esbuild({
    entryPoints: [entry],
    bundle: true,
    write: false,
    metafile: true,
    platform: "browser",
    logLevel: "silent",
  });
  const imported = Object.values(metafile.inputs).flatMap(({ imports }) => imports);
  expect(imported.filter(({ path, external }) => external || isBuiltin(path))).toEqual([]);
  expect(Object.keys(metafile.inputs).filter((path) => /connect-node/.test(path))).toEqual([]);
  const bundled = await vite({
    root: folder,
    configFile: false,
    logLevel: "silent",
    build: { write: false, rolldownOptions: { input: entry } },
  });
  const [first] = [bundled].flat();
  if (first === undefined || !("output" in first)) {
    return expect.fail("vite gave no bundle");
  }
  const chunks = first.output.flatMap((chunk) => (chunk.type === "chunk" ? [chunk] : []));
  expect(chunks.flatMap(({ imports }) => imports)).toEqual([]);
  const modules = chunks.flatMap(({ moduleIds }) => moduleIds);
  // What stands for a module of Node's is one that vite makes up.
  expect(modules.filter((id) => /browser-external|connect-node/.test(id))).toEqual([]);
  expect(modules.filter((id) => id.endsWith("dist/client/browser.js"))).toHaveLength(1);
});
