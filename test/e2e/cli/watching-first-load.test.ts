import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { post } from "./calling.ts";
import { Gate } from "./gate.ts";
import { Program } from "./program.ts";

const PROCESS_MS = 40_000;
const folder = mkdtempSync(join(tmpdir(), "tessera-first-load-"));
const path = join(folder, "service.ts");
let gate: Gate;
let program: Program;

beforeAll(async () => {
  gate = await Gate.start();
});
afterAll(async () => {
  await gate[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});
afterEach(() => program[Symbol.asyncDispose]());

function serve(code: string): void {
  writeFileSync(path, code);
  program = new Program(["serve", "--port", "0", path, "--watch", "--workers", "1"]);
}

function source(version: string): string {
  return `import { api, service } from "tessera-platform";
export default service({
  name: "watched",
  endpoints: { version: api({}, () => ${JSON.stringify(version)}) },
});
`;
}

/** The answer of the service, once the program has greeted. */
async function version(): Promise<string> {
  const [, port = ""] = await program.says("stdout", / on http:\/\/localhost:(\d+)\n/);
  return (await post(`http://127.0.0.1:${port}/version`)).body;
}

describe("--watch, while the first code never finishes loading", { timeout: PROCESS_MS }, () => {
  beforeEach(() => {
    serve(`await fetch(${JSON.stringify(gate.url("load"))});\n${source("hanging")}`);
  });

  it("says that a change ends it, and serves the change", async () => {
    const { gone } = await gate.visit("load");
    await program.says("stderr", /takes long to load; .*the next change of a source file begins/);
    writeFileSync(path, source("mended"));
    await gone;
    expect(await version()).toBe('"mended"');
    writeFileSync(path, source("changed"));
    await program.says("stderr", /the service was reloaded/);
    expect(await version()).toBe('"changed"');
    const { code, stderr } = await program.stop();
    expect({ code, left: program.leftovers }).toEqual({ code: 0, left: [] });
    expect(stderr).not.toMatch(/could not be (?:re)?loaded/);
  });

  it("waits for the next change when one cannot be loaded", async () => {
    await gate.visit("load");
    writeFileSync(path, "export default service({");
    const [line = ""] = await program.says("stderr", /.*could not be loaded.*/);
    expect((JSON.parse(line) as { reason: string }).reason).toMatch(/service\.ts:1:\d+: /);
    writeFileSync(path, source("mended"));
    expect(await version()).toBe('"mended"');
  });

  it("stops without waiting for it", async () => {
    await gate.visit("load");
    const { code } = await program.stop();
    expect({ code, left: program.leftovers }).toEqual({ code: 0, left: [] });
  });
});

describe("--watch, when the first code cannot be loaded", { timeout: PROCESS_MS }, () => {
  it("ends with the reason, as without it", async () => {
    serve('throw new Error("torn");');
    const { code, stdout, stderr } = await program.ended;
    expect({ code, stdout, left: program.leftovers }).toEqual({ code: 1, stdout: "", left: [] });
    expect(stderr).toMatch(/service\.ts:1:\d+: torn/);
  });
});
