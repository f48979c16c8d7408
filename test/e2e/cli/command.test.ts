import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Ended, Program, run } from "./program.ts";

const PROCESS_MS = 30_000;
const folder = mkdtempSync(join(tmpdir(), "tessera-command-"));
const fine = fixture("zod-functions.ts");

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function fixture(name: string): string {
  return fileURLToPath(new URL(`../../fixtures/services/${name}`, import.meta.url));
}

function written(name: string, source: string): string {
  const path = join(folder, name);
  writeFileSync(path, source);
  return path;
}

/** An exit code, and on stderr these words alone: no stack trace, nothing on stdout. */
function expectRefusal(
  { code, signal, stdout, stderr }: Ended,
  words: string | RegExp,
  exitCode = 1,
): void {
  expect(stderr).toMatch(words);
  expect(stderr).not.toMatch(/^\s+at /m);
  expect(stderr).not.toContain("node:internal");
  expect(stderr.trim().split("\n").length).toBeLessThanOrEqual(3);
  expect({ code, signal, stdout }).toEqual({ code: exitCode, signal: null, stdout: "" });
}

describe("help", { timeout: PROCESS_MS }, () => {
  it.each([["--help"], ["serve", "--help"], ["help", "serve"]])(
    "has examples: %s %s",
    async (...args) => {
      const { code, stdout, stderr } = await run(args);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout).toMatch(/Examples:\n {2}\$ tessera (?:init my-service|serve service\.ts)/);
    },
  );

  it("says what workers can be allowed", async () => {
    const { stdout } = await run(["serve", "--help"]);
    for (const option of ["--allow-read <path>", "--allow-addons", "--allow-workers", "--env"]) {
      expect(stdout).toContain(option);
    }
  });

  it("is what a call without a command gets, as an error", async () => {
    const { code, stdout, stderr } = await run([]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain("Usage: tessera");
  });

  it("has the version", async () => {
    const { code, stdout } = await run(["--version"]);
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
    });
  });
});

describe("what is not a command", { timeout: PROCESS_MS }, () => {
  it.each([
    ["an unknown command", ["srve"], "unknown command 'srve'"],
    ["an unknown option", ["serve", fine, "--prot", "1"], "unknown option '--prot'"],
    ["two services", ["serve", fine, fine], "too many arguments"],
    ["an option without its value", ["serve", fine, "--port"], "argument missing"],
  ])("is refused with a hint at the help: %s", async (_, args, words) => {
    const ended = await run(args);
    expectRefusal(ended, words, 2);
    expect(ended.stderr).toMatch(/tessera .*--help/);
  });
});

describe("a service file that cannot be served", { timeout: PROCESS_MS }, () => {
  it.each([
    ["is missing", "nothing-here.ts", /service file nothing-here\.ts does not exist/],
    ["lies in no folder", `${fine}/x.ts`, /service file .*x\.ts does not exist/],
    ["exports nothing", "no-service.ts", /no-service\.ts exports no service/],
    ["exports it by name", "named-export.ts", /named-export\.ts exports its service as mine/],
    [
      "throws at import",
      "throws-at-import.ts",
      /throws-at-import\.ts:6:9: RangeError: the weights/,
    ],
    ["exits at import", "exits.ts", /exits\.ts: the process exited with code 3/],
    ["fails in setup", "setup-throws.ts", /setup-throws\.ts:6:11: no model here/],
    ["wants a package", "missing-package.ts", /cannot find a-package-that-is-not-installed/],
    ["has two names", "two-names.ts", /two-names\.ts:\d+:\d+: .*two endpoints named go/],
    ["has two methods", "two-methods.js", /two-methods\.js:\d+:\d+: .*two endpoints named go/],
    ["has two keys", "two-keys.js", /two-keys\.js:11:5: two endpoints named go/],
    ["has a reserved name", "reserved-name.ts", /reserved-name\.ts:3:16: .*"submit".*reserved/],
    ["has a reserved path", "reserved-file-name.ts", /:3:16: .*"schema\.json".*reserved/],
    ["has a bad name", "bad-name.ts", /bad-name\.ts:3:16: .*DNS label/],
  ])("is refused with the place: one that %s", async (_, name, words) => {
    const path = name.includes("/") || name.startsWith("nothing") ? name : refused(name);
    expectRefusal(await run(["serve", path, "--port", "0"]), words);
  });

  it("is refused when it is a folder that says of no service", async () => {
    const ended = await run(["serve", folder, "--port", "0"]);
    expectRefusal(ended, /there is no .*tessera\.yaml\nname the service, such as service\.ts/, 2);
  });

  it("is that of ./tessera.yaml where none is named, and said before it is loaded", async () => {
    const ended = await run(["serve", "--port", "0"], { cwd: folder });
    expectRefusal(
      ended,
      /^Loading what .\/tessera.yaml says …\ntessera: there is no tessera.yaml/,
      2,
    );
    const named = await run(["serve", "nothing.ts", "--port", "0"], { cwd: folder });
    expectRefusal(named, /^Loading nothing\.ts …\n/);
  });

  it("is refused with line and column when it does not compile", async () => {
    const path = written(
      "broken.ts",
      'import { api } from "tessera-platform";\n\nexport default api({,);\n',
    );
    expectRefusal(
      await run(["serve", path, "--port", "0"]),
      /broken\.ts:3:21: Expected identifier/,
    );
  });

  it("is refused when an import of it does not exist", async () => {
    const path = written("lost.ts", 'import { x } from "./not-there.ts";\nexport default x;\n');
    expectRefusal(await run(["serve", path, "--port", "0"]), /lost\.ts:1:\d+: .*not-there\.ts/);
  });

  it("is refused when it is not source code", async () => {
    const path = written("notes.txt", "hello");
    expectRefusal(await run(["serve", path]), /notes\.txt is not TypeScript or JavaScript/);
  });
});

function refused(name: string): string {
  return fixture(`refused/${name}`);
}

describe("a configuration that cannot be", { timeout: PROCESS_MS }, () => {
  it.each([
    ["--port", "x", /--port must be a whole number from 0 to 65535, not "x"/, 2],
    ["--workers", "0", /--workers must be a whole number from 1/, 2],
    ["--host", "203.0.113.9", /cannot listen on 203\.0\.113\.9:\d+: .*check --host/, 1],
    ["--token", "short", /must have 8 to 1024 characters/, 2],
    ["--database", join(folder, "nowhere", "x.db"), /folder .*nowhere does not exist/, 1],
    ["--database", folder, /it is a folder/, 1],
    [
      "--database",
      written("notes.db", "not a database ".repeat(100)),
      /notes\.db: it is a file of another kind/,
      1,
    ],
  ])("is refused: %s %j", async (option, value, words, code) => {
    expectRefusal(await run(["serve", fine, option, value]), words, code);
  });

  it("is refused without showing the password: an unknown kind of database", async () => {
    const ended = await run(["serve", fine, "--database", "mongodb://me:secret@host/db"]);
    expectRefusal(ended, /the scheme mongodb:\/\/ is not known/, 2);
    expect(ended.stderr).not.toContain("secret");
  });

  it("is refused when it comes from the environment", async () => {
    const token = await run(["serve", fine], { env: { TESSERA_TOKEN: "short" } });
    expectRefusal(token, /TESSERA_TOKEN/, 2);
    const level = await run(["serve", fine], { env: { TESSERA_LOG_LEVEL: "loud" } });
    expectRefusal(level, /TESSERA_LOG_LEVEL must be one of debug, info/, 2);
  });
});

describe("what another program holds", { timeout: PROCESS_MS }, () => {
  let port = "";
  const other = createServer();

  beforeAll(async () => {
    other.listen(0, "127.0.0.1");
    await once(other, "listening");
    port = String((other.address() as AddressInfo).port);
  });
  afterAll(() => other.close());

  it("is named: the port", async () => {
    const ended = await run(["serve", fine, "--port", port]);
    expectRefusal(ended, `cannot listen on 127.0.0.1:${port}: another program is using it`);
  });

  it("is named: the database", async () => {
    const database = join(folder, "held.db");
    const { program } = await Program.serve([fine, "--database", database]);
    await using _ = program;
    const ended = await run(["serve", fine, "--port", "0", "--database", database]);
    expectRefusal(ended, /held\.db: another tessera process is using it/);
  });
});
