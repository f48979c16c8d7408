/** `tessera serve` of a service in Python, as its author uses it. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { Program, run as runProgram } from "../cli/program.ts";
import { pythonMissing } from "../clients/python-environment.ts";
import { serviceInterpreter } from "./interpreter.ts";

const SERVICE = fileURLToPath(new URL("../../fixtures/services/serve/pages.py", import.meta.url));

const skipped = leftOut(pythonMissing);

describe.skipIf(skipped)(`a service in Python${skipped}`, () => {
  let python: string;
  let program: Program;
  let url: string;
  let folder: string;

  beforeAll(async () => {
    python = (await serviceInterpreter()).named ?? "";
    folder = mkdtempSync(join(tmpdir(), "tessera-python-"));
    ({ program, url } = await Program.serve([SERVICE, "--python", python, "--workers", "1"]));
  }, 300_000);
  afterAll(async () => {
    await program[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  async function post(path: string, body: object, base = url): Promise<Response> {
    return fetch(`${base}/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  }

  /** Submits a task; resolves with its result. */
  async function result(endpoint: string, body: object): Promise<unknown> {
    const { task_id: id } = (await (await post(`${endpoint}/submit`, body)).json()) as {
      task_id: string;
    };
    return (await fetch(`${url}/${endpoint}/get?task_id=${id}&wait=60`)).json();
  }

  it("answers sync and async functions, with models and files", async () => {
    expect(await (await post("greet", { name: "Ada" })).text()).toBe("hello Ada");
    expect(await (await post("judge", { page: { text: "a" } })).json()).toEqual({
      text: "a",
      score: 0.5,
    });
    const form = new FormData();
    form.set("file", new Blob(["page"], { type: "text/plain" }), "page.txt");
    const stamped = await fetch(`${url}/stamp`, { method: "POST", body: form });
    expect(await stamped.text()).toBe("page (read)");
    expect(stamped.headers.get("content-disposition")).toContain("stamped.txt");
  });

  it("is described by its type hints and docstrings", async () => {
    const document = (await (await fetch(`${url}/docs.json`)).json()) as {
      info: { description: string };
      components: { schemas: Record<string, unknown> };
    };
    expect(document.info.description).toContain("Reads pages.");
    expect(document.components.schemas["greet.input"]).toMatchObject({
      properties: { name: { type: "string", minLength: 1 } },
    });
  });

  it.each([
    ["greet", { name: "" }, 400, "must have at least 1 character"],
    ["judge", { page: { text: "blank" } }, 400, "a blank page cannot be judged"],
    ["judge", { page: { text: "nan" } }, 500, "score in it is not a finite number"],
    ["shorten", { text: "gone" }, 500, "returned 0 results for a batch of 1"],
  ])("fails %s of %j with %i", async (path, body, status, said) => {
    const answer = await post(path, body);
    expect(answer.status).toBe(status);
    expect(await answer.text()).toContain(said);
  });

  it("counts before it answers", async () => {
    await post("judge", { page: { text: "counted" } });
    const metrics = await (await fetch(`${url}/metrics`)).text();
    expect(metrics).toMatch(/pages_seen\{[^}]*language="de"[^}]*\} [1-9]/);
  });

  it("attributes print and logging to their task", async () => {
    expect(await result("read", { pages: ["one", "two"] })).toBe(2);
    await program.says("stderr", /"endpoint":"read".*"msg":"reading two"/);
    const [line] = await program.says("stderr", /\{.*"msg":"read 2 pages"\}/);
    expect(JSON.parse(line)).toMatchObject({
      level: 40,
      fields: { logger: "reader", pages: 2 },
      attempt: 1,
    });
  });

  it("hears what a call says after its end as the output of its worker", async () => {
    expect(await (await post("leave", {})).text()).toBe("ended");
    await program.says("stderr", /"from":"service","msg":"said after the end"/);
  });

  it("ends a task whose time is up, whose function hears it", async () => {
    expect(await result("slow", {})).toMatchObject({ code: "deadline_exceeded" });
    await program.says("stderr", /left in time/);
  });

  it("goes on while a function writes 100 MB", async () => {
    const { program: heard, url: at } = await Program.serve(
      [SERVICE, "--python", python, "--workers", "1"],
      // What the service writes goes nowhere, so that only the node is in its way.
      { within: ["sh", "-c", 'exec "$@" 2>/dev/null', "sh"] },
    );
    await using _ = heard;
    const before = await (await post("pid", {}, at)).json();
    const written = post("chatter", { mebibytes: 100 }, at);
    expect(await (await post("greet", { name: "Bea" }, at)).text()).toBe("hello Bea");
    expect(await (await written).text()).toBe("written");
    expect(await (await post("pid", {}, at)).json()).toBe(before);
  });

  it("lets functions fork, and gives no child the channel", async () => {
    const before = await (await post("pid", {})).json();
    const forked = await (await post("fork", {})).json();
    expect(forked).toEqual({ status: 7, stray: 0, put: "put", descriptors: 4 });
    expect(await (await post("pid", {})).json()).toBe(before);
  });

  it("finishes each task once, however often its worker is killed", async () => {
    const numbers = Array.from({ length: 40 }, (_, number) => number);
    const results = Promise.all(numbers.map((number) => result("survive", { number, folder })));
    for (let kills = 0; kills < 3; kills += 1) {
      await expect.poll(() => readdirSync(folder).length).toBeGreaterThan(8 * kills);
      let pid: unknown;
      // While its successor starts, nobody answers.
      await expect
        .poll(async () => {
          pid = await (await post("pid", {})).json();
          return typeof pid;
        })
        .toBe("number");
      process.kill(pid as number, "SIGKILL");
    }
    expect(await results).toEqual(numbers);
    const ran = numbers.map((number) => readFileSync(join(folder, String(number)), "utf8"));
    // An attempt that was killed began in one process, and its successor in another.
    expect(ran.every((pids) => new Set(pids.split("\n")).size === pids.split("\n").length)).toBe(
      true,
    );
  });

  it("stops while a thread of the service goes on", async () => {
    await using other = (await Program.serve([SERVICE, "--python", python, "--workers", "1"]))
      .program;
    const [, at = ""] = await other.says("stdout", / on (http:\/\/\S+)/);
    expect(await (await post("linger", {}, at.replace("localhost", "127.0.0.1"))).text()).toBe(
      "left",
    );
    const ended = await other.stop();
    expect(ended.code).toBe(0);
    expect(ended.stderr).toContain("the model is gone");
  });

  it("is loaded again when a source file changes", async () => {
    const path = join(folder, "changing.py");
    const source = (word: string) =>
      `from tessera import api, service\n\n@service\nclass Changing:\n    @api\n    def say(self) -> str:\n        return "${word}"\n`;
    writeFileSync(path, source("one"));
    const { program: watching, url: at } = await Program.serve([
      path,
      ...["--python", python, "--watch", "--workers", "1"],
    ]);
    await using _ = watching;
    expect(await (await post("say", {}, at)).text()).toBe("one");
    writeFileSync(path, `${source("two")}raise RuntimeError("not yet")\n`);
    await watching.says("stderr", /changing\.py:8: RuntimeError: not yet/);
    expect(await (await post("say", {}, at)).text()).toBe("one");
    writeFileSync(path, source("three"));
    await watching.says("stderr", /the service was reloaded/);
    expect(await (await post("say", {}, at)).text()).toBe("three");
  });

  const HEAD = "from tessera import api, service\n";
  it.each([
    ["a syntax error", `${HEAD}def broken(:\n`, /service\.py:2:\d+: /],
    [
      "a missing package",
      `${HEAD}import cv2\n`,
      /service\.py:2: the package cv2 is not installed for \S+: run \S+ -m pip install opencv-python-headless/,
    ],
    ["no service", HEAD, /service\.py has no service; put @service on a class/],
    [
      "two services",
      `${HEAD}@service\nclass A:\n    @api\n    def a(self) -> None: ...\n@service\nclass B:\n    @api\n    def b(self) -> None: ...\n`,
      /has 2 services; choose one: \S+service\.py:A or \S+service\.py:B/,
    ],
    [
      "a type without a schema",
      `${HEAD}class T: ...\n@service\nclass A:\n    @api\n    def a(self, t: T) -> None: ...\n`,
      /service "a", endpoint "a", parameter t: the type T has no schema/,
    ],
    [
      "an exception at import",
      `${HEAD}def load():\n    raise OSError("no weights")\nload()\n`,
      /service\.py:3: OSError: no weights/,
    ],
    [
      "an exception in setup",
      `${HEAD}@service\nclass A:\n    def setup(self):\n        raise OSError("no weights")\n    @api\n    def a(self) -> None: ...\n`,
      /setup of the service failed: OSError: no weights/,
    ],
    ["an exit", `${HEAD}import sys\nsys.exit(3)\n`, /the process exited with code 3 while loading/],
  ])("is refused for %s, with one message", async (_, source, said) => {
    const path = join(folder, "service.py");
    writeFileSync(path, source);
    const ended = await runProgram(["serve", path, "--python", python, "--port", "0"]);
    expect(ended.code).toBe(1);
    // The last line, which says what is wrong, needs nothing before it.
    expect(ended.stderr.trim().split("\n").at(-1)).toMatch(said);
  });

  it("is chosen among several by its name", async () => {
    const path = join(folder, "several.py");
    writeFileSync(
      path,
      `${HEAD}@service\nclass A:\n    @api\n    def a(self) -> str: return "A"\n@service\nclass B:\n    @api\n    def b(self) -> str: return "B"\n`,
    );
    const { program: chosen, url: at } = await Program.serve([`${path}:B`, "--python", python]);
    await using _ = chosen;
    expect(await (await post("b", {}, at)).text()).toBe("B");
    const { program: module, url: there } = await Program.serve(["several:A", "--python", python], {
      cwd: folder,
    });
    await using __ = module;
    expect(await (await post("a", {}, there)).text()).toBe("A");
  });

  it.each([
    [["--python", "/nowhere/python"], {}, /--python \/nowhere\/python is not there/],
    [[], { PATH: "/nowhere" }, /there is no python3 on the PATH: install Python 3\.10 or newer/],
    [["--python", process.execPath], {}, /does not run as Python/],
  ])("needs an interpreter: %j %j", async (flags, env, said) => {
    const { code, stderr } = await runProgram(["serve", SERVICE, ...flags], { env });
    const [loads, fault, ...others] = stderr.trim().split("\n");
    expect({ code, others }).toEqual({ code: 1, others: [] });
    expect(loads).toMatch(/^Loading /);
    expect(fault).toMatch(said);
  });
});
