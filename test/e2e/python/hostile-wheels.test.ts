/** Wheels that try to run code, or to write, while an environment is made of them. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { buildArtifact } from "../../../src/artifacts/build.ts";
import type { BuiltArtifact } from "../../../src/artifacts/build-options.ts";
import { indexFiles } from "../../../src/artifacts/content.ts";
import { EnvironmentStore } from "../../../src/artifacts/environments/store.ts";
import { createIndex, digestOf, LOCK_NAME, writeIndex } from "../../../src/artifacts/index-file.ts";
import { WorkerPlace } from "../../../src/client/index.ts";
import { programLauncher } from "../../../src/pool/launchers.ts";
import type { Sandbox } from "../../../src/pool/sandbox/sandbox.ts";
import { leftOut } from "../../needed.ts";
import { kernelSandbox, skipped as noSandbox } from "../../pool/sandbox/available.ts";
import { pythonMissing } from "../clients/python-environment.ts";
import { until, World } from "../hosting/world.ts";
import { hasJoined, startAgent, workerToken } from "../workers/agent-program.ts";
import { lockLine, type MadePackage, PackageIndex } from "./package-index.ts";
import { buildOptions, indexEnv, type Tools, tools } from "./uv.ts";

const skipped = leftOut(pythonMissing);
const MEBIBYTE = 1024 ** 2;
/** With less, a machine without any sandbox would run what a package brings as its user. */
const NO_SANDBOX: Sandbox = {
  level: "permission",
  setpriv: undefined,
  prlimit: undefined,
  memoryGroups: undefined,
  memoryHeldBy: "nothing",
  shortfall: undefined,
};

let found: Tools;
let index: PackageIndex;
let folder: string;
/** Where code of a package leaves a mark if it runs outside of a sandbox. */
let marks: string;
beforeAll(async () => {
  if (!skipped) {
    found = await tools();
    index = await PackageIndex.start();
    folder = realpathSync(mkdtempSync(join(tmpdir(), "tessera-hostile-wheels-")));
    marks = join(folder, "marks");
    mkdirSync(marks);
    // An installation of Python whose first module leaves a mark, for what names it as its home.
    const encodings = join(folder, `evil/lib/python${found.interpreter.version}/encodings`);
    mkdirSync(encodings, { recursive: true });
    mkdirSync(join(folder, "evil/bin"));
    writeFileSync(join(encodings, "__init__.py"), marking("home"));
  }
}, 300_000);
afterEach(() => {
  expect(skipped ? [] : readdirSync(marks)).toEqual([]);
});
afterAll(async () => {
  await index?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

/** Code that leaves a mark, on one line. */
function marking(name: string): string {
  return `import io; io.open(${JSON.stringify(join(marks, name))}, "w").close()\n`;
}

/** Hostile wheels, by what they try. */
const WHEELS: Readonly<Record<string, () => MadePackage>> = {
  "a .pth file that imports": () =>
    index.add("pth", "1.0", { files: { "evil.pth": marking("pth") } }),
  "modules that the interpreter loads by itself": () =>
    index.add("custom", "1.0", {
      files: { "sitecustomize.py": marking("site"), "usercustomize.py": marking("user") },
    }),
  "another home of the interpreter": () =>
    index.add("home", "1.0", {
      files: { "home-1.0.data/data/pyvenv.cfg": `home = ${folder}/evil/bin\n` },
    }),
  "modules in the place of the standard library's": () =>
    index.add("shadow", "1.0", {
      files: { "py_compile.py": marking("py_compile"), "json/__init__.py": marking("json") },
    }),
  "a module with an encoding of its own": () =>
    index.add("coded", "1.0", {
      files: {
        "encodings/evil.py": marking("encoding"),
        "evil.py": marking("evil"),
        "coded/other.py": "# coding: evil\nVALUE = 1\n",
      },
    }),
  "files in the place of ours": () =>
    index.add("ours", "1.0", {
      files: {
        "ours-1.0.data/data/contents.json": "{}",
        "ours-1.0.data/data/tessera.lock": "evil",
        "ours-1.0.data/data/wheels/evil.whl": "evil",
        "ours/sub/__pycache__": "a file",
        "ours/sub/module.py": "VALUE = 1\n",
      },
    }),
  "a wheel inside a wheel": () =>
    index.add("nested", "1.0", {
      files: { "pth-9.0-py3-none-any.whl": index.wheel("pth").bytes.toString("latin1") },
    }),
  "files outside of the environment": () =>
    index.add("outside", "1.0", {
      files: {
        "../../../../../marks/above": "evil",
        "outside-1.0.data/data/../../../marks/above": "evil",
      },
    }),
};

/** Those that only have files which no environment has. */
const LINKS: Readonly<Record<string, () => MadePackage>> = {
  "links to files of the machine": () =>
    index.add("links", "1.0", {
      links: { "links/passwd": "/etc/passwd", "links/folder": marks, "links/__pycache__": marks },
    }),
};

/** The same, of which no environment is made. */
const REFUSED: Readonly<Record<string, readonly [() => MadePackage, RegExp]>> = {
  "an interpreter among its scripts": [
    () =>
      index.add("script", "1.0", {
        files: { "script-1.0.data/scripts/python": `#!/bin/sh\n: > ${marks}/script\n` },
      }),
    /script[\s\S]*reserved name `python`/,
  ],
  "an entry point outside of the environment": [
    () =>
      index.add("point", "1.0", {
        files: {
          "point-1.0.dist-info/entry_points.txt":
            "[console_scripts]\n../../../../marks/point = point:main\n",
        },
      }),
    /point[\s\S]*within the scripts directory/,
  ],
};

const open = async (sandbox: Sandbox, log: string[] = []) => {
  const home = realpathSync(mkdtempSync(join(folder, "environments-")));
  const store = new EnvironmentStore({
    folder: home,
    interpreters: async () => [found.interpreter],
    uv: async () => found.uv,
    env: { UV_DEFAULT_INDEX: index.url, UV_HTTP_RETRIES: "0" },
    launch: programLauncher(sandbox),
    maxBytesPerOrganization: 4 * 1024 ** 3,
    // Far more than tests beside this one make on the same disk meanwhile.
    maxFiles: 20_000,
    log: { info() {}, warn: (fields) => void log.push(JSON.stringify(fields)) },
    now: Date.now,
  });
  await store.start();
  return Object.assign(store, { folder: home });
};

/** The compiled modules of the environment with this interpreter, by their paths. */
function compiledIn(python: string): string[] {
  const packages = join(python, "../../lib", `python${found.interpreter.version}`, "site-packages");
  const names = readdirSync(packages, { recursive: true, encoding: "utf8" });
  return names.filter((name) => name.endsWith(`.${found.interpreter.cacheTag}.pyc`));
}

describe.skipIf(skipped)(`an environment that is made without any sandbox${skipped}`, () => {
  it.each(Object.entries(WHEELS))("runs no code of a wheel that brings %s", async (_, make) => {
    const store = await open(NO_SANDBOX);
    const made = make();
    const { python, verify } = await store.hold({
      lock: lockLine(made),
      python: found.interpreter.version,
    });
    await verify();
    const compiled = compiledIn(python);
    expect(compiled).toContain(
      `${made.name}/__pycache__/__init__.${found.interpreter.cacheTag}.pyc`,
    );
  });

  it.each(Object.entries(REFUSED))("is not made with %s", async (_, [make, reason]) => {
    const store = await open(NO_SANDBOX);
    const lock = lockLine(make());
    const refused = store.hold({ lock, python: found.interpreter.version });
    await expect(refused).rejects.toThrow(reason);
  });
});

describe.skipIf(skipped)(`what an environment takes${skipped}`, () => {
  it.each(Object.entries(LINKS))("has no %s", async (_, make) => {
    const { python } = await (await open(NO_SANDBOX)).hold({
      lock: lockLine(make()),
      python: found.interpreter.version,
    });
    const folder = join(python, "../../lib", `python${found.interpreter.version}`, "site-packages");
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
    expect(entries.filter((entry) => entry.isSymbolicLink())).toEqual([]);
  });

  it.each([
    [
      "in memory",
      () => index.add("described", "1.0", { metadataMb: 400 }),
      "takes more than 1024 MiB of memory: the files METADATA or RECORD of one",
    ],
    [
      "in files",
      () =>
        index.add("many", "1.0", {
          files: Object.fromEntries(
            Array.from({ length: 25_000 }, (_, at) => [`many/module_${at}.py`, ""]),
          ),
        }),
      "its packages have more than 20000 files",
    ],
  ])("is bounded %s, and what there is of it goes", async (_, make, reason) => {
    const store = await open(NO_SANDBOX);
    const refused = store.hold({ lock: lockLine(make()), python: found.interpreter.version });
    await expect(refused).rejects.toMatchObject({
      message: expect.stringContaining(reason),
      isFinal: true,
    });
    expect(readdirSync(store.folder).filter((name) => name !== "cache")).toEqual([]);
    const cached = readdirSync(store.folder, { recursive: true, withFileTypes: true });
    expect(cached.filter((entry) => entry.name.endsWith(".py"))).toEqual([]);
  });
});

/** Modules that compilers choke on: memory, time, the stack of their parsers. */
const CHOKING: Readonly<Record<string, () => string>> = {
  "nested tuples of 100 MB": () => `X = [${"((1,(2,(3,(4,)))),),".repeat(5_000_000)}]\n`,
  "constants that fold into others": () => `X = ${"(".repeat(90)}1,${"),".repeat(89)})*4\n`,
  "parentheses without end": () => `X = ${"(".repeat(5_000_000)}\n`,
  "signs without end": () => `X = ${"-".repeat(3_000_000)}1\n`,
};

describe.skipIf(skipped)(`modules that compilers choke on${skipped}`, () => {
  const sandboxes = [
    ["without a sandbox", () => NO_SANDBOX],
    ...(noSandbox ? [] : [["in the kernel's sandbox", kernelSandbox] as const]),
  ] as const;

  it.each(sandboxes)(
    "take no more memory than their deployment has, and no others with them, %s",
    async (_, sandbox) => {
      const log: string[] = [];
      const store = await open(sandbox(), log);
      const said: string[] = [];
      const files = Object.fromEntries(
        Object.values(CHOKING).map((text, at) => [`big/module_${at}.py`, text()]),
      );
      const lock = lockLine(
        index.add("big", "1.0", { files: { ...files, "big/z.py": "X = 1\n" } }),
      );
      const { python } = await store.hold(
        {
          ...{ lock, python: found.interpreter.version },
          memoryBytes: 128 * MEBIBYTE,
        },
        { onProgress: (text) => said.push(text) },
      );
      const compiled = compiledIn(python).map((path) => path.replace(/^.*\/|\..*$/g, ""));
      expect(compiled).toEqual(expect.arrayContaining(["__init__", "z"]));
      expect(compiled).not.toContain("module_0");
      expect(said.join("\n")).toMatch(
        /big\/module_0.py is not compiled: (?:it cannot be compiled within 128 MiB of memory|out of memory: it used \d+ MiB of 128 MiB)/,
      );
      expect(log.join("\n")).toContain("big/module_0.py");
    },
    120_000,
  );
});

describe.skipIf(skipped)(`an environment of a deployment with little memory${skipped}`, () => {
  const compiled = (python: string): string[] =>
    compiledIn(python).flatMap((path) => /^\w+\/__pycache__\/(\w+)\./.exec(path)?.[1] ?? []);

  it("leaves modules out for itself, and not for others with the same lock", async () => {
    const store = await open(NO_SANDBOX);
    const large = `X = [${"((1,(2,(3,(4,)))),),".repeat(40_000)}]\n`;
    const lock = lockLine(index.add("large", "1.0", { files: { "large/table.py": large } }));
    const spec = { lock, python: found.interpreter.version };
    const small = await store.hold({ ...spec, memoryBytes: 96 * MEBIBYTE });
    expect(compiled(small.python)).toEqual(["__init__"]);
    const [other, whole] = await Promise.all([
      store.hold({ ...spec, memoryBytes: 96 * MEBIBYTE }),
      store.hold({ ...spec, memoryBytes: 4_096 * MEBIBYTE }),
    ]);
    expect(other.python).toBe(small.python);
    expect(compiled(whole.python).toSorted()).toEqual(["__init__", "table"]);
    const next = await store.hold({ ...spec, memoryBytes: 96 * MEBIBYTE });
    expect(next.python).toBe(whole.python);
    expect((await store.hold(spec)).python).toBe(whole.python);
  });
});

const SERVICE = `
import os
from tessera import api, service

@service
class Reader:
    @api
    def started(self) -> list[str]:
        return sorted(os.listdir(os.environ["TMPDIR"]))
`;

describe.skipIf(skipped || noSandbox)(
  `a hostile artifact that is deployed${skipped || noSandbox}`,
  () => {
    let world: World;
    let built: BuiltArtifact;
    let env: Record<string, string>;
    const python = () => ({
      interpreters: [`${found.interpreter.version}=${found.interpreter.path}`],
      needsSandbox: true,
      uv: found.uv,
      maxBytesPerOrganization: 1024 * MEBIBYTE,
    });

    beforeAll(async () => {
      env = indexEnv(index.url);
      const home = mkdtempSync(join(folder, "service-"));
      writeFileSync(join(home, "service.py"), SERVICE);
      built = await buildArtifact(join(home, "service.py"), {
        python: buildOptions(found, env),
      });
      world = await World.start({ env, config: { python: python() } });
    }, 300_000);
    afterAll(() => world?.[Symbol.asyncDispose]());

    /** The artifact, with these packages besides those that it needs. */
    const bringing = async (...packages: readonly MadePackage[]): Promise<BuiltArtifact> => {
      const lock = `${built.files.get(LOCK_NAME)}${packages.map(lockLine).join("")}`;
      const files = new Map([...built.files, [LOCK_NAME, Buffer.from(lock)] as const]);
      const of = createIndex(built.index.service, await indexFiles(files), {
        entry: "service.py",
        python: { version: found.interpreter.version },
      });
      return { ...built, index: of, digest: digestOf(writeIndex(of)), files };
    };
    const answers = (name: string) =>
      until(
        () => world.call(name, "/started", { body: {} }),
        ({ status }) => status === 200,
        ({ status, text }) => `${status} ${text}`,
      );

    it("runs nothing outside of the sandbox, neither on a node nor where a worker joins", async () => {
      const hostile = await bringing(...Object.values(WHEELS).map((make) => make()));
      const trace = await Trace.start(join(folder, "trace"));
      await world.deployed("here", hostile);
      await answers("here");
      const placed = { settings: { place: WorkerPlace.REMOTE } };
      await world.deploy("joined", hostile, placed);
      const token = await workerToken(world, ["joined"]);
      const { version, path } = found.interpreter;
      await using agent = startAgent(world, {
        ...{ token, deployment: "joined", env },
        flags: ["--sandbox", "kernel", "--python", `${version}=${path}`, "--uv", found.uv],
      });
      await hasJoined(agent);
      await answers("joined");
      const executed = await trace?.stop();
      if (executed === undefined) {
        return;
      }
      // What is seen at all: the workers, which bubblewrap starts inside.
      const inEnvironments = executed.filter(({ program }) => program.includes("/environments/"));
      expect(new Set(inEnvironments.map(({ by }) => by))).toEqual(new Set(["bwrap"]));
      expect(inEnvironments.length).toBeGreaterThanOrEqual(2);
      expect(executed.map(({ program }) => program)).toContain(path);
    }, 120_000);
  },
);

/** The programs that this process and its children start, where strace may watch them. */
class Trace {
  readonly #strace: ChildProcess;
  readonly #file: string;

  private constructor(strace: ChildProcess, file: string) {
    this.#strace = strace;
    this.#file = file;
  }

  /** Undefined where there is no strace, or it may not watch this process. */
  static async start(file: string): Promise<Trace | undefined> {
    // `-Y` tells the name of who starts a program, before it becomes that program.
    const options = ["-f", "-Y", "-s", "4096", "-e", "trace=execve", "-o", file];
    const strace = spawn("strace", [...options, "-p", String(process.pid)]);
    const said = createInterface({ input: strace.stderr });
    const attached = await new Promise<boolean>((resolve) => {
      strace.once("error", () => resolve(false));
      strace.once("exit", () => resolve(false));
      said.on("line", (line) => resolve(/attached/.test(line)));
    });
    return attached ? new Trace(strace, file) : undefined;
  }

  async stop(): Promise<readonly { readonly by: string; readonly program: string }[]> {
    const exited = once(this.#strace, "exit");
    this.#strace.kill("SIGINT");
    await exited;
    const lines = readFileSync(this.#file, "utf8").matchAll(
      /^\d+<(?<by>[^>]*)> execve\("(?<program>[^"]*)"/gm,
    );
    return [...lines].map(({ groups = {} }) => ({
      by: groups.by ?? "",
      program: groups.program ?? "",
    }));
  }
}
