import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Program, type ProgramOptions, run } from "../cli/program.ts";
import { administration, Folder } from "../start/platform.ts";

const ENTRY = "../../../scripts/start.ts";
const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const TEST_MS = 120_000;

let folder: Folder;
beforeEach(() => {
  folder = new Folder();
});
afterEach(() => folder[Symbol.dispose]());

/** `npm start` with the data of this test. */
function start(port = "0", more: readonly string[] = [], options: ProgramOptions = {}): Program {
  const args = ["--port", port, "--data", folder.data, ...more];
  return new Program(args, { entry: ENTRY, ...options });
}

/** The lines that it offers, run by a shell; each answer on a line of its own. */
async function paste(stdout: string): Promise<string[]> {
  const lines = stdout
    .split("\n")
    .filter((line) => /^ {2}(?:curl|task_id=|app=|export )/.test(line));
  const script = lines.map((line) => `${line}\n${line.includes("curl ") ? "echo" : ""}`).join("\n");
  const answers = await promisify(execFile)("sh", ["-euc", script], { cwd: ROOT });
  return answers.stdout.trim().split("\n");
}

const SUMMARY = "The moon pulls the sea, and the sea follows the moon.";

it("sets a platform up with both examples, which the next start finds as they were", {
  timeout: TEST_MS,
}, async () => {
  await using first = start();
  await first.says("stdout", /Ctrl-C stops/);
  const [, password] = /password +(\w{20}) /.exec(first.stdout) ?? [];
  expect(password).toBeDefined();
  expect(first.stdout).toMatch(/--examples all\n\n {2}ocr .*Python 3\.10 to 3\.12, 15 packages/);
  const [byHost, byHeader, , status, result, ...digits] = await paste(first.stdout);
  expect([byHost, byHeader]).toEqual([SUMMARY, SUMMARY]);
  const { task_id: taskId } = JSON.parse(status ?? "") as { task_id: string };
  expect(JSON.parse(result ?? "")).toEqual([SUMMARY]);
  expect(digits.map((text) => (JSON.parse(text) as { digit: number }).digit)).toEqual([3]);
  expect(await first.stop("SIGINT")).toMatchObject({ code: 0, signal: null });

  await using second = start();
  await second.says("stdout", /Ctrl-C stops/);
  expect(second.stdout).toContain("as it was shown at the first start");
  expect(second.stdout).not.toContain(password);
  const { stderr, stdout } = await settled(second, taskId);
  expect(stderr).not.toContain("tessera deploy ");
  expect(stderr).not.toContain("admin setup");
  const tokens = ["npm-start.token", "digits.token"].map((name) =>
    readFileSync(join(folder.data, name), "utf8"),
  );
  for (const token of tokens) {
    expect(token).toMatch(/^tsrp_/);
    expect([first.stdout, stdout, stderr].join("")).not.toContain(token);
  }
  expect(new Set(tokens).size).toBe(2);
});

it("says how to renew the token that deploys, when it has expired, and runs the examples on", {
  timeout: TEST_MS,
}, async () => {
  await using first = start();
  await first.says("stdout", /Ctrl-C stops/);
  await first.stop("SIGINT");
  const deployer = join(folder.data, "npm-start.token");
  writeFileSync(deployer, `tsrp_${"0".repeat(36)}`);
  await using second = start();
  await second.says("stdout", /Ctrl-C stops/);
  expect(second.stdout).toContain(`the token in ${deployer}\nhas expired`);
  expect(second.stdout).toContain("token create npm-start --developer-operations --endpoint ");
  const [byHost] = await paste(second.stdout);
  expect(byHost).toBe(SUMMARY);
});

/** What the second start serves: all of it again, and the task of before; then it ends. */
async function settled(program: Program, taskId: string) {
  const [, , , , result, ...digits] = await paste(program.stdout);
  expect(JSON.parse(result ?? "")).toEqual([SUMMARY]);
  expect(digits).toHaveLength(1);
  const [, url = ""] = / on (http:\S+) with/.exec(program.stdout) ?? [];
  const earlier = await fetch(`${url}/summarize_batch/get?task_id=${taskId}`, {
    headers: { "tessera-deployment": "acme/summarizer" },
  });
  expect(await earlier.json()).toEqual([SUMMARY]);
  const ended = await program.stop("SIGTERM");
  expect(ended).toMatchObject({ code: 0, signal: null });
  return ended;
}

it("leaves a platform alone that somebody else has set up", async () => {
  const args = ["admin", "setup", "--organization", "globex", "--email", "ada@example.com"];
  expect(await run([...args, "--data", folder.data])).toMatchObject({ code: 0 });
  await using program = start();
  const { code, stderr } = await program.ended;
  expect(code).toBe(1);
  expect(stderr).toContain("contains a platform that npm start has not set up");
  await using data = await administration(folder);
  expect((await data.organizations()).map(({ name }) => name)).toEqual(["globex"]);
});

it("ends when its port is taken, and makes up for it at the next start", {
  timeout: TEST_MS,
}, async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  await using refused = start(String((taken.address() as AddressInfo).port));
  expect(await refused.ended).toMatchObject({ code: 1, stdout: "" });
  taken.close();
  // Without Python, too, of which it says what is left out for that.
  await using next = start("0", ["--examples", "all"], { env: { PATH: folder.data } });
  await next.says("stdout", /password +\w{20} [\s\S]*Ctrl-C stops/);
  expect(next.stdout).toMatch(/ocr, .* is left out: there is no python3; it needs Python 3\.10/);
  expect(next.stdout).toMatch(/filetype, .* is left out: there is no python3/);
  expect(await next.stop()).toMatchObject({ code: 0 });
});
