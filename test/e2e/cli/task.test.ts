import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ServedClients, serveClients } from "../client/served.ts";
import { artifact, World } from "../hosting/world.ts";
import { type Served, serve } from "../serve/served.ts";
import { Person, type RunOptions } from "./person.ts";

const TOKEN = "a-token-for-clients";
const MISSING = "01890000-0000-7000-8000-000000000000";

let served: ServedClients;
let folder: string;
const ada = new Person();
beforeAll(async () => {
  served = await serveClients({ token: TOKEN });
  folder = mkdtempSync(join(tmpdir(), "tessera-task-"));
});
afterAll(async () => {
  await served[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
  ada[Symbol.dispose]();
});

/** Runs a command on the served service. */
function run(args: readonly string[], options: RunOptions = {}) {
  const env = { TESSERA_TOKEN: TOKEN, ...options.env };
  return ada.run([...args, "--url", served.url], { ...options, env });
}

/** Submits a task; gives its id. */
async function submit(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await run(["task", "submit", ...args]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return stdout.trim();
}

function file(name: string, content: string | Buffer): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

describe("a call", () => {
  it("takes arguments as JSON, as pairs, from a file and from standard input", async () => {
    const hello = { code: 0, stdout: "Hello Ada!Hello Ada!\n", stderr: "" };
    expect(await run(["call", "greet", '{"name":"Ada","times":2}'])).toEqual(hello);
    expect(await run(["call", "greet", "name=Ada", "times=2"])).toEqual(hello);
    const path = file("args.json", '{"name": "Ada"}');
    expect(await run(["call", "greet", `@${path}`, "times=2"])).toEqual(hello);
    const input = '{"name":"Ada"}';
    expect(await run(["call", "greet", "-", "times=2"], { input })).toEqual(hello);
    expect(await run(["call", "greet", 'name="2"'])).toMatchObject({ stdout: "Hello 2!\n" });
  });

  it("writes JSON as it came", async () => {
    const { stdout } = await run(["call", "echo", 'value={"a":[1,null]}']);
    expect(stdout).toBe('{"a":[1,null]}\n');
  });

  it("sends files, several under one name, and writes one", async () => {
    const content = randomBytes(300_000);
    const sha256 = createHash("sha256").update(content).digest("hex");
    const large = file("large.bin", content);
    const { stdout } = await run([
      "call",
      "measure",
      `document=@${large}`,
      `others=@${large}`,
      `others=@${large}`,
      "title=x",
    ]);
    const facts = { name: "large.bin", bytes: 300_000, sha256 };
    expect(JSON.parse(stdout)).toMatchObject({
      document: facts,
      others: [facts, facts],
      title: "x",
    });

    const path = join(folder, "pixel.png");
    expect(await run(["call", "paint", "name=p.png", "--output-file", path])).toMatchObject({
      code: 0,
      stdout: "",
      stderr: `Wrote ${path}\n`,
    });
    expect(readFileSync(path).toString("hex")).toBe("89504e470d0a1a0a");
    expect(readdirSync(folder).filter((name) => name.endsWith(".part"))).toEqual([]);
  });

  it("waits for a task, with a line for its progress where there is no terminal", async () => {
    const { code, stdout, stderr } = await run(["call", "climb", "steps=3"]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "3\n" });
    expect(stderr).toBe("100 %  3 steps\n");
  });

  it("draws a bar on a terminal", async () => {
    const { stdout, stderr } = await run(["call", "climb", "steps=3"], { answers: [] });
    expect(stdout).toBe("3\n");
    expect(stderr).toContain(`${"█".repeat(24)} 100 %  3 steps`);
  });
});

describe("a call that streams", () => {
  let streaming: Served;
  beforeAll(async () => {
    streaming = await serve("streaming");
  });
  afterAll(() => streaming.stop());
  const stream = (args: readonly string[], options: RunOptions = {}) =>
    ada.run(["call", ...args, "--url", streaming.origin], options);

  it("writes texts as they come, other values in a line each, and bytes as they are", async () => {
    const list = 'list=["a","b\\n","c"]';
    expect(await stream(["texts", list])).toEqual({ code: 0, stdout: "ab\nc", stderr: "" });
    expect(await stream(["values", list])).toMatchObject({ stdout: '"a"\n"b\\n"\n"c"\n' });
    expect(await stream(["audio", 'list=["a","b"]'])).toMatchObject({ code: 0, stdout: "ab" });
    const path = join(folder, "texts.txt");
    await stream(["texts", list, "--output-file", path]);
    expect(readFileSync(path, "utf8")).toBe("ab\nc");
  });

  it("that fails in the middle has written what came before", async () => {
    const failed = await stream(["breaks", "pieces=2"]);
    expect(failed).toMatchObject({ code: 1, stdout: "piece;piece;" });
    expect(failed.stderr).toContain("that is all");
  });
});

describe("a task", () => {
  it("is submitted, looked at, waited for, watched, read and retried", async () => {
    const id = await submit("add", "numbers=[1,2,3]");
    expect(await run(["task", "wait", "add", id])).toMatchObject({ code: 0, stdout: "6\n" });
    expect(await run(["task", "get", "add", id])).toMatchObject({ code: 0, stdout: "6\n" });
    const { stdout: status } = await run(["task", "status", "add", id]);
    expect(status).toMatch(new RegExp(`^task +${id}\nstatus +success\n`));
    const { stdout: json } = await run(["task", "status", "add", id, "-o", "json"]);
    expect(JSON.parse(json)).toMatchObject({ task_id: id, status: "success", failure: null });
    const { stdout: log } = await run(["task", "watch", "add", id]);
    expect(log).toMatch(/^\S+Z {2}queued\n\S+Z {2}running\n\S+Z {2}success\n$/);
    const retried = (await run(["task", "retry", "add", id])).stdout.trim();
    expect(retried).not.toBe(id);
    expect(await run(["task", "wait", "add", retried])).toMatchObject({ stdout: "6\n" });
    const { stdout: list } = await run(["task", "list", "add"]);
    expect(list).toMatch(new RegExp(`^TASK +ENDPOINT +STATUS .*\n${retried} +add +success`));
  });

  it("gives back the arguments that it was submitted with, and their files", async () => {
    const content = randomBytes(300_000);
    const large = file("given.bin", content);
    const id = await submit("measure_later", `document=@${large}`, "title=x");
    const { stdout } = await run(["task", "arguments", "measure_later", id]);
    expect(JSON.parse(stdout)).toEqual({
      arguments: { document: 0, title: "x" },
      files: [
        {
          argument: "document",
          filename: "given.bin",
          content_type: "application/octet-stream",
          size: 300_000,
        },
      ],
    });
    const path = join(folder, "read.bin");
    const args = ["task", "arguments", "measure_later", id, "--file"];
    expect(await run([...args, "0", "--output-file", path])).toMatchObject({ code: 0 });
    expect(readFileSync(path).equals(content)).toBe(true);
    expect((await run([...args, "-1"])).stderr).toContain("is not the number of a file");
    const missing = await run([...args, "1"]);
    expect(missing).toMatchObject({ code: 2, stdout: "" });
    expect(missing.stderr).toContain("which have one file, 0");
  });

  it("is submitted once with one key", async () => {
    const args = ["add", "numbers=[9]", "--idempotency-key", "nine", "--delay", "1h"];
    expect(await submit(...args)).toBe(await submit(...args));
  });

  it("starts at once when it is changed so, before its time", async () => {
    const given = ["--delay", "1h", "--start-within", "2h", "--tag", "a", "--tag", "b"];
    const id = await submit("add", "numbers=[4]", ...given);
    expect((await run(["task", "list", "--tag", "b", "--tag", "a"])).stdout).toContain(id);
    expect((await run(["task", "list", "--tag", "c"])).stdout).not.toContain(id);
    const change = [
      "--priority",
      "5",
      "--run-at",
      "now",
      "--start-by",
      "none",
      "--retention",
      "1h",
      "--tag",
      "c",
    ];
    expect(await run(["task", "update", "add", id, ...change])).toMatchObject({
      stdout: "updated\n",
    });
    expect(await run(["task", "wait", "add", id])).toMatchObject({ code: 0, stdout: "4\n" });
    expect((await run(["task", "status", "add", id])).stdout).toMatch(/tags +c\n/);
  });

  it("is cancelled, and one that runs only by --abort", async () => {
    const waiting = await submit("add", "numbers=[]", "--delay", "1h", "--priority", "-5");
    expect(await run(["task", "cancel", "add", waiting])).toMatchObject({ stdout: "cancelled\n" });
    const id = await submit("hold");
    const watched = run(["task", "watch", "hold", id], {
      onStdout: (text) => {
        if (text.includes("running") && !aborting) {
          aborting = run(["task", "cancel", "hold", id]);
        }
      },
    });
    let aborting: ReturnType<typeof run> | undefined;
    await expect.poll(() => aborting).toBeDefined();
    const refused = await aborting;
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused?.stderr).toContain("to stop it nevertheless: add --abort");
    expect(await run(["task", "cancel", "hold", id, "--abort"])).toMatchObject({ code: 0 });
    expect((await watched).stdout).toMatch(/ 50 % waiting to be stopped[\s\S]*cancelled\n$/);
  });
});

describe("what goes wrong", () => {
  it("ends with the exit code of its kind, and says what to do", async () => {
    const wrong = await run(["call", "greet", "name=Ada"], { env: { TESSERA_TOKEN: "wrong" } });
    expect(wrong).toMatchObject({ code: 3, stdout: "" });
    expect(wrong.stderr).toMatch(/\ntessera cloud login, or give a token by/);
    expect(await run(["call", "nothing"])).toMatchObject({ code: 4 });
    expect(await run(["task", "get", "add", MISSING])).toMatchObject({ code: 4 });
    const failed = await run(["call", "fail_later", "code=error", "message=out of luck"]);
    expect(failed).toEqual({ code: 1, stdout: "", stderr: "tessera: out of luck\n" });
    const refused = await run(["call", "greet", "name=", "times=9"]);
    expect(refused.stderr).toMatch(/name.*times/s);
    expect(refused.code).toBe(2);
    const misnamed = await run(["call", "greet", "nam=Ada"]);
    expect(misnamed.code).toBe(2);
    expect(misnamed.stderr).toContain('"name" is required');
    expect(misnamed.stderr).toMatch(/nam(?: is no argument of greet: it takes name|" is not an)/);
    const unchanged = await run(["task", "update", "hold", MISSING]);
    expect(unchanged).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("give --priority"),
    });
    const held = await submit("hold");
    const late = await run(["task", "wait", "hold", held, "--timeout", "0s"]);
    expect(late.stderr).toMatch(/it goes on, so wait for it again/);
    const kept = await run(["task", "delete", "hold", held, "--yes"]);
    expect(kept.stderr).toContain("is running");
    const remove = ["task", "delete", "hold", held, "--abort", "--yes"];
    for (const _ of ["the call", "its repetition"]) {
      expect(await run(remove)).toMatchObject({ code: 0, stdout: "deleted\n" });
    }
    expect((await run(["task", "status", "hold", held])).stderr).toContain("was deleted on");
  });

  it.each([
    [["call", "greet"], "it is not said which deployment"],
    [["call", "greet", "name", "--url", "http://127.0.0.1:1"], '"name" is no argument'],
    [["call", "greet", "a=@nothing.png", "--url", "x"], "the file nothing.png does not exist"],
    [["call", "greet", "{", "--url", "x"], "the JSON is not JSON"],
    [["call", "greet", "[1]", "--url", "x"], '"[1]" is no argument'],
    [["call", "greet", "--url", "x", "--deployment", "y"], "two ways to say"],
  ])("is told before anything is called: %j", async (args, message) => {
    const { code, stderr } = await ada.run(args);
    expect(stderr).toContain(message);
    expect(code).toBe(2);
  });

  it("is Ctrl-C, which ends the wait and leaves the task", async () => {
    const id = await submit("hold");
    const waiting = run(["task", "wait", "hold", id], { answers: [] });
    ada.onStderr = (text) => text.includes("50 %") && ada.interrupt();
    expect(await waiting).toMatchObject({ code: 130 });
    ada.onStderr = () => {};
    expect(await run(["task", "cancel", "hold", id, "--abort"])).toMatchObject({ code: 0 });
  });

  it("is a server that is not there", async () => {
    const { code, stderr } = await ada.run(["task", "list", "--url", "http://127.0.0.1:1"]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/cannot be reached/);
  });
});

it("a deployment has a host below localhost, also where the system knows no such hosts", async () => {
  await using world = await World.start();
  const { value } = await world.platform.createToken(world.cookie, { name: "callers" });
  await world.deployed("echo", await artifact());
  const { port } = new URL(world.platform.url);
  const url = `http://echo.acme.apps.localhost:${port}`;
  const env = { TESSERA_TOKEN: value };
  const called = await ada.run(["client", "generate", url], { env });
  expect(called).toMatchObject({ code: 0 });
  expect(called.stdout).toContain("export interface Echo {");
  expect(called.stdout).toContain('} from "tessera-platform/client";');
  const args = ["call", "say", "text=hello", "--url", url];
  expect(await ada.run(args, { env })).toMatchObject({ stdout: "one hello\n" });
  expect(await ada.run(["task", "list", "--url", url], { env })).toMatchObject({ code: 0 });
  const login = { SERVICE_CLOUD_API_ENDPOINT: world.platform.url, SERVICE_CLOUD_API_KEY: value };
  const named = await ada.run(["task", "list", "--deployment", "echo"], { env: login });
  expect(named).toMatchObject({ code: 0 });
  // Without either, of all deployments of the organization.
  const { value: both } = await world.platform.createToken(world.cookie, {
    name: "person",
    access: ["developer_operations", "protected_endpoint"],
    all_deployments: true,
  });
  login.SERVICE_CLOUD_API_KEY = both;
  const all = await ada.run(["task", "list"], { env: login });
  expect(all).toMatchObject({ code: 0, stdout: "" });
  const { stdout } = await ada.run(["task", "list", "--json"], { env: login });
  expect(JSON.parse(stdout)).toEqual({ tasks: [], next_page_token: "" });
  const python = join(folder, "echo.py");
  expect(await ada.run(["client", "generate", url, "--output", python], { env })).toMatchObject({
    code: 0,
  });
  expect(readFileSync(python, "utf8")).toContain("from tessera");
});

it("the login's token goes to no other host", async () => {
  const asked: (string | undefined)[] = [];
  const { createServer } = await import("node:http");
  const server = createServer((req, res) => {
    asked.push(req.headers.authorization);
    res.end('{"name":"x","type":"service","routes":[]}');
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  const login = (host: string) => ({
    SERVICE_CLOUD_API_ENDPOINT: `http://${host}:${port}`,
    SERVICE_CLOUD_API_KEY: "tsrp_secret",
  });
  const generate = ["client", "generate", `http://127.0.0.1:${port}`];
  expect(await ada.run(generate, { env: login("localhost") })).toMatchObject({ code: 0 });
  expect(await ada.run(generate, { env: login("127.0.0.1") })).toMatchObject({ code: 0 });
  server.close();
  expect(asked).toEqual([undefined, "Bearer tsrp_secret"]);
});
