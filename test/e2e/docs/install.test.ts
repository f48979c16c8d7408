/** The commands of docs/typescript.md, as somebody types them who has a checkout and an empty folder. */
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
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

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "tessera-install-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("installs the package that a checkout packs, and its program does what the page says", async () => {
  expect(pack).toBe("npm ci && npm pack\n");
  const commands = setUp.trim().split("\n");
  const serve = commands.pop();
  expect(serve).toBe("npx tessera serve service.ts");

  // `npm ci` has built dist/, which other tests use: packing must not build it anew.
  const checkout = join(folder, "tessera");
  mkdirSync(checkout);
  symlinkSync(join(ROOT, "examples"), join(checkout, "examples"));
  await run("npm", ["pack", "--ignore-scripts", "--pack-destination", checkout], { cwd: ROOT });

  const own = join(folder, "own");
  mkdirSync(own);
  expect(setUp).toContain(`tessera-platform-${version}.tgz`);
  await run("bash", ["-e", "-c", commands.join("\n")], { cwd: own });
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
