import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { post, result, submit } from "./calling.ts";
import { Gate } from "./gate.ts";
import { Program } from "./program.ts";

const PROCESS_MS = 40_000;
const root = mkdtempSync(join(tmpdir(), "tessera-watching-"));
let gate: Gate;
let count = 0;
let folder = "";
let program: Program;
let url = "";

beforeAll(async () => {
  gate = await Gate.start();
});
afterAll(async () => {
  await gate[Symbol.asyncDispose]();
  rmSync(root, { recursive: true, force: true });
});
beforeEach(async () => {
  count += 1;
  folder = join(root, String(count));
  write("service.ts", source("first"));
  write("parts/answer.ts", 'export const answer = "old";\n');
  ({ program, url } = await Program.serve([
    join(folder, "service.ts"),
    "--watch",
    "--workers",
    "1",
  ]));
});
afterEach(() => program[Symbol.asyncDispose]());

function write(name: string, text: string): void {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** A service whose functions tell which source they come from. */
function source(version: string, more = ""): string {
  return `import { api, service, task } from "tessera-platform";
import { answer } from "./parts/answer.ts";
export default service({
  name: "watched",
  endpoints: {
    version: api({}, () => ${JSON.stringify(version)} + " " + answer),
    hold: task({ concurrency: 1 }, async () => {
      const response = await fetch(${JSON.stringify(gate.url("hold"))});
      return ${JSON.stringify(version)} + " " + (await response.text());
    }),
    ${more}
  },
});
`;
}

async function reloaded(): Promise<void> {
  await program.says("stderr", /the service was reloaded/);
}

describe("--watch", { timeout: PROCESS_MS }, () => {
  it("answers from the new code when the service changes", async () => {
    expect((await post(`${url}/version`)).body).toBe('"first old"');
    write("service.ts", source("second", 'added: api({}, () => "here"),'));
    await reloaded();
    expect((await post(`${url}/version`)).body).toBe('"second old"');
    expect((await post(`${url}/added`)).body).toBe('"here"');
  });

  it("follows the local modules that the service imports", async () => {
    write("parts/answer.ts", 'export const answer = "new";\n');
    await reloaded();
    expect((await post(`${url}/version`)).body).toBe('"first new"');
  });

  it("notices a file that was saved by renaming", async () => {
    write("parts/.answer.ts.tmp", 'export const answer = "renamed";\n');
    renameSync(join(folder, "parts/.answer.ts.tmp"), join(folder, "parts/answer.ts"));
    await reloaded();
    expect((await post(`${url}/version`)).body).toBe('"first renamed"');
  });

  it("finishes on the old code what began there, and keeps the queue for the new", async () => {
    const running = await submit(url, "hold", {});
    const old = await gate.visit("hold");
    const queued = await submit(url, "hold", {});
    write("service.ts", source("second"));
    await reloaded();
    (await gate.visit("hold")).open("after");
    expect((await result(url, "hold", queued)).body).toBe('"second after"');
    old.open("before");
    expect((await result(url, "hold", running)).body).toBe('"first before"');
  });

  it.each([
    ["does not compile", "export default service({", /service\.ts:1:\d+: /],
    ["throws at import", 'throw new Error("torn");', /service\.ts:1:\d+: torn/],
    ["exports no service", "export default 1;", /not a service/],
  ])("goes on with the old code while the new one %s", async (_, broken, words) => {
    write("service.ts", broken);
    const [line = ""] = await program.says("stderr", /.*could not be reloaded.*/);
    expect((JSON.parse(line) as { reason: string }).reason).toMatch(words);
    expect((await post(`${url}/version`)).body).toBe('"first old"');
    write("service.ts", source("fixed"));
    await reloaded();
    expect((await post(`${url}/version`)).body).toBe('"fixed old"');
  });

  it("loads a module that was missing as soon as it is there", async () => {
    write("service.ts", `import "./later.ts";\n${source("second")}`);
    await program.says("stderr", /later\.ts/);
    write("later.ts", "export {};\n");
    await reloaded();
    expect((await post(`${url}/version`)).body).toBe('"second old"');
  });

  describe("while the new code never finishes loading", () => {
    /** As it stands in the source: what comes after it in the file is never reached. */
    const hang = (name: string): string => `await fetch(${JSON.stringify(gate.url(name))});\n`;

    beforeEach(async () => {
      write("service.ts", `${hang("load")}${source("hanging")}`);
    });

    it("says so after some seconds, and the old code goes on", async () => {
      await gate.visit("load");
      await program.says("stderr", /takes long to load/);
      expect((await post(`${url}/version`)).body).toBe('"first old"');
    });

    it("gives it up for the next change, whichever it is", async () => {
      const first = await gate.visit("load");
      expect((await post(`${url}/version`)).body).toBe('"first old"');
      write("parts/answer.ts", `${hang("again")}export const answer = "new";\n`);
      const second = await gate.visit("again");
      await first.gone;
      write("parts/answer.ts", 'export const answer = "new";\n');
      await gate.visit("load");
      await second.gone;
      await program.says("stderr", /"reason":"the source has changed".*a worker ended/);
      write("service.ts", source("mended"));
      await reloaded();
      expect((await post(`${url}/version`)).body).toBe('"mended new"');
      const { stderr } = await program.stop();
      expect(stderr).not.toContain("could not be reloaded");
    });

    it("ends it first when it stops, also where it hears nothing", async () => {
      write("service.ts", `${hang("block")}while (true);\n`);
      const { open, gone } = await gate.visit("block");
      open("loop");
      await gone;
      const { code, stderr } = await program.stop();
      expect({ code, left: program.leftovers }).toEqual({ code: 0, left: [] });
      expect(stderr).toMatch(/SIGTERM[\s\S]*"reason":"the server is shutting down"/);
      expect(stderr).not.toContain("could not be reloaded");
    });
  });

  it("stops as without it", async () => {
    const { code } = await program.stop();
    expect({ code, left: program.leftovers }).toEqual({ code: 0, left: [] });
  });
});
