/** The commands of docs/typescript.md, as somebody types them who has a checkout and an empty folder. */
import { execFile } from "node:child_process";
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { version } from "../../../src/version.ts";
import { Program } from "../cli/program.ts";
import { ROOT } from "../clients/python-environment.ts";

const PAGE = readFileSync(join(ROOT, "docs/typescript.md"), "utf8");
const [pack = "", setUp = ""] = [...PAGE.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, text]) => text);
const [, program = "", prints = ""] =
  /```ts\n([\s\S]*?)```\n\n```text\n([\s\S]*?)```/.exec(PAGE) ?? [];

const run = promisify(execFile);

/** Sizes of the files of all packages without zod: 88 MB, of at most 90 that the large package may take. */
const MAX_INSTALLED_BYTES = 90_000_000;

let folder: string;
let own: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "tessera-install-"));
  own = join(folder, "own");
  expect(pack).toBe("npm ci && npm pack\n");
  // `npm ci` has built dist/, which other tests use: packing must not build it anew.
  const checkout = join(folder, "tessera");
  mkdirSync(checkout);
  symlinkSync(join(ROOT, "examples"), join(checkout, "examples"));
  await run("npm", ["pack", "--ignore-scripts", "--pack-destination", checkout], { cwd: ROOT });
  mkdirSync(own);
  expect(setUp).toContain(`tessera-platform-${version}.tgz`);
  const commands = setUp.trim().split("\n");
  expect(commands.pop()).toBe("npx tessera serve service.ts");
  await run("bash", ["-e", "-c", commands.join("\n")], { cwd: own });
}, 300_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("installs the package that a checkout packs, and its program does what the page says", async () => {
  writeFileSync(join(own, "program.ts"), program);
  const { program: server, url } = await Program.serve([join(own, "service.ts")]);
  await using _ = server;
  const { stdout } = await run("node", ["program.ts"], {
    cwd: own,
    env: { ...process.env, TESSERA_URL: url },
  });
  expect(stdout).toBe(prints);
  const { stdout: said } = await run("npx", ["tessera", "--version"], { cwd: own });
  expect(said.trim()).toBe(version);
}, 300_000);

it("installs what every platform needs, and nothing else", () => {
  const modules = join(own, "node_modules");
  const bytes = readdirSync(modules, { recursive: true, encoding: "utf8" })
    .filter((file) => !file.startsWith("zod/"))
    .map((file) => lstatSync(join(modules, file)))
    .reduce((sum, stats) => sum + (stats.isFile() ? stats.size : 0), 0);
  expect(bytes).toBeLessThan(MAX_INSTALLED_BYTES);
  const names = readdirSync(modules);
  expect(names).toContain("tessera-platform");
  expect(names).not.toContain("@aws-sdk");
  expect(names).not.toContain("@opentelemetry");
});

it.each([
  [
    "serve",
    ["service.ts", "--port", "0"],
    { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" },
    "npm install @opentelemetry/api@^1 @opentelemetry/otlp-transformer@^0.301 ",
  ],
  [
    "start",
    ["--port", "0", "--data", "data", "--blobs", "s3://bucket/prefix"],
    {},
    "npm install @aws-sdk/client-s3@^3 @aws-sdk/lib-storage@^3\n",
  ],
])(
  "%s says what to install where a setting asks for optional packages",
  async (command, args, env, hint) => {
    const failed = await run("npx", ["tessera", command, ...args], {
      cwd: own,
      env: { ...process.env, ...env },
      timeout: 60_000,
    }).catch((err) => err);
    expect(failed.code).toBe(2);
    expect(failed.stderr).toContain(hint);
    expect(failed.stderr).not.toContain("    at ");
  },
  90_000,
);
