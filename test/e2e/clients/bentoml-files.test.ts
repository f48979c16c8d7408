/**
 * BentoML's service files, unmodified: the adapter beside `bentoml serve`, and BentoML's own
 * clients against `tessera serve`.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { freePort } from "../../free-port.ts";
import { leftOut } from "../../needed.ts";
import { Program } from "../cli/program.ts";
import { bentomlEnvironment, CLIENTS, SERVED } from "./bentoml-environment.ts";
import {
  COMPILED,
  type Environment,
  pythonMissing,
  ROOT,
  run,
  TESSERA_COMMAND,
} from "./python-environment.ts";

const PYTHON_CLIENT = join(ROOT, "clients/python");
const SERVICE = join(PYTHON_CLIENT, "tests/bentoml_files/eight.py");
const PROGRAM = join(ROOT, "test/e2e/clients/bentoml_files_program.py");

const ANSWERS = {
  text: "Grüezi Ada, Grüezi Ada",
  model: {
    name: "Ada",
    born: null,
    addresses: [{ street: "Bahnhofstrasse 1", city: "Zürich" }],
  },
  image: ["PNG", 3, 3],
  path: "ABC",
  array: [
    "ndarray",
    [
      [2, 4],
      [6, 8],
    ],
  ],
  table: ["DataFrame", [{ price: 1.5, count: 2, total: 3 }]],
  tokens: "to be or not ",
  depends: "hallo Welt",
  route: { a: 1 },
  count: { sum: 6, known: true, started: ["async", "sync"] },
};

const skipped = leftOut(pythonMissing);

describe.skipIf(skipped)(`BentoML's service files${skipped}`, () => {
  let made: Environment;
  beforeAll(async () => {
    made = await bentomlEnvironment();
  }, 600_000);

  it.each(SERVED)(
    "of %s answer as bentoml serve does, byte for byte",
    async (version) => {
      const args = ["-W", "ignore", "-m", "pytest", "tests/bentoml_files", "-W", "ignore"];
      const env = { ...COMPILED, PYTHONPATH: made.beside(version), TESSERA_COMMAND };
      expect(await run(made.python, args, { cwd: PYTHON_CLIENT, env })).toMatch(/\d+ passed/);
    },
    420_000,
  );

  it("are run by as many processes as they say, unless the command line says another", async () => {
    const env = envOf(SERVED.at(-1) ?? "");
    const folder = mkdtempSync(join(tmpdir(), "tessera-workers-"));
    const path = join(folder, "counted.py");
    const served = async (declared: string, ...flags: string[]): Promise<string> => {
      const lines = ["import bentoml", `@bentoml.service(${declared})`, "class Counted:"];
      const method = ["    @bentoml.api", "    def one(self) -> int: return 1", ""];
      writeFileSync(path, [...lines, ...method].join("\n"));
      const { program } = await Program.serve([path, ...pythonFlags(env), ...flags]);
      await using _ = program;
      return /\(1 endpoint, (.*)\) on/.exec(program.stdout)?.[1] ?? "";
    };
    try {
      expect(await served("")).toBe("1 worker");
      expect(await served("workers=3")).toBe("3 workers");
      expect(await served("workers=3", "--workers", "2")).toBe("2 workers");
    } finally {
      rmSync(folder, { recursive: true });
    }
  }, 120_000);

  it("of 1.3.22 are served to BentoML's own clients", async () => {
    const env = envOf("1.3.22");
    const { program, url } = await Program.serve([SERVICE, ...pythonFlags(env)]);
    await using _ = program;
    expect(await answers(url, env)).toEqual({ sync: ANSWERS, async: ANSWERS });
  }, 120_000);

  it.each(CLIENTS)(
    "are the same to the clients of %s under both servers, also while these start",
    async (version) => {
      const env = envOf(version);
      const home = await mkdtemp(join(tmpdir(), "tessera-bentoml-home-"));
      const [ours, theirs] = [await freePort(), await freePort()];
      const flags = ["--port", String(ours), "--host", "127.0.0.1"];
      await using _ = new Program(["serve", SERVICE, ...flags, ...pythonFlags(env)]);
      await using stack = new AsyncDisposableStack();
      stack.defer(() => rm(home, { recursive: true, force: true }));
      stack.use(bentomlServe(theirs, { ...env, BENTOML_HOME: home, BENTOML_DO_NOT_TRACK: "True" }));
      const [here, there] = await Promise.all(
        [ours, theirs].map((port) => answers(`http://127.0.0.1:${port}`, env)),
      );
      expect(here).toEqual(there);
      // The submit of this client fails on its own, when the task is stored.
      const isBroken = version === "1.4.40";
      const count = isBroken ? expect.stringContaining("_opened_files") : ANSWERS.count;
      expect(here).toEqual({ sync: { ...ANSWERS, count }, async: ANSWERS });
    },
    240_000,
  );

  const envOf = (version: string) => ({ ...COMPILED, PYTHONPATH: made.beside(version) });
  /** What both clients of a version got, in one process: importing it takes two seconds of processor time. */
  const answers = async (url: string, env: Record<string, string>) =>
    JSON.parse(await run(made.python, ["-W", "ignore", PROGRAM, url], { env }));
  const pythonFlags = (env: Readonly<Record<string, string>>) => [
    ...["--python", made.python],
    ...Object.entries(env).flatMap(([name, value]) => ["--env", `${name}=${value}`]),
  ];

  /** `bentoml serve` of the same file; it ends with its process. */
  function bentomlServe(port: number, env: Readonly<Record<string, string>>): AsyncDisposable {
    const args = ["-W", "ignore", "-m", "bentoml", "serve", "eight:Eight", "--host", "127.0.0.1"];
    const server = spawn(made.python, [...args, "--port", String(port)], {
      cwd: dirname(SERVICE),
      env: { PATH: process.env.PATH, ...env },
      stdio: "ignore",
      timeout: 240_000,
    });
    const exited = once(server, "exit");
    return {
      async [Symbol.asyncDispose]() {
        server.kill();
        await exited;
      },
    };
  }
});
