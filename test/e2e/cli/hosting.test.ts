import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PASSWORD } from "../start/platform.ts";
import { json, type Scene, scene } from "./platform-person.ts";

const FILE_BYTES = 3_000_000;
const PARTS = 20;

let at: Scene;
let folder: string;
beforeAll(async () => {
  at = await scene();
  folder = mkdtempSync(join(tmpdir(), "tessera-test-hosting-"));
});
afterAll(async () => {
  await at[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

const run = (...args: readonly string[]) => at.ada.run(args);

/** Writes a service in a folder of its own; returns its file. */
function write(name: string, code: string): string {
  mkdirSync(join(folder, name), { recursive: true });
  const path = join(folder, name, "service.js");
  writeFileSync(path, `import { api, service, task } from "tessera-platform";\n${code}`);
  return path;
}

function wordService(word: string): string {
  return write(
    "words",
    `export default service({ name: "words", endpoints: {
  word: api({}, () => { console.log("asked for ${word}"); return "${word}" + (process.env.MARK ?? "") + (process.env.KEY ?? ""); }),
  later: task({}, () => "${word}"),
} });`,
  );
}

async function ask(endpoint: string, headers: Record<string, string> = {}): Promise<string> {
  const res = await fetch(`${at.platform.url}/${endpoint}`, {
    method: "POST",
    headers: { "content-type": "application/json", "tessera-deployment": "acme/words", ...headers },
    body: "{}",
  });
  // Without a schema of its output, text is answered as JSON.
  return `${res.status} ${(await res.text()).replace(/^"(.*)"$/, "$1")}`;
}

/** The words that complete the last of these. */
async function complete(...words: readonly string[]): Promise<string[]> {
  const { stdout } = await run("complete", "--", ...words);
  return stdout.split("\n").flatMap((line) => (line === "" ? [] : [line.split("\t", 1)[0] ?? ""]));
}

describe("a service on a platform", () => {
  it("is deployed, called, changed, rolled back, stopped, started and deleted", async () => {
    const first = await run("deploy", wordService("one"));
    expect(first).toMatchObject({ code: 0 });
    expect(first.stdout).toMatch(
      /^http:\/\/words\.acme\.apps\.localhost:\d+\n\n {2}curl http:\S+\/word -H "content-type: application\/json" -d '\{\}'\n\n$/,
    );
    expect(await ask("word")).toBe("200 one");
    expect(await complete("deployment", "get", "w")).toEqual(["words"]);
    expect(await complete("call", "--deployment=w")).toEqual(["--deployment=words"]);
    expect(await complete("call", "--deployment", "words", "")).toEqual(["word", "later"]);
    expect(await complete("task", "submit", "-d", "words", "")).toEqual(["later"]);
    expect(await complete("org", "get", "")).toEqual(["acme"]);
    const submitted = await run("task", "submit", "later", "-d", "words");
    expect(await complete("task", "status", "-d", "words", "later", "")).toEqual([
      submitted.stdout.trim(),
    ]);
    expect(await run("call", "later", "-d", "words")).toMatchObject({ code: 0 });
    const page = `${at.platform.url}/o/acme/deployments/words`;
    expect((await run("open", "words", "--no-browser")).stdout).toBe(`${page}\n`);
    expect((await run("open")).stdout).toBe(`${at.platform.url}/\n`);
    expect(json(await run("open", "words", "--json"))).toEqual({ url: page });
    expect(await run("open", "nothing")).toMatchObject({ code: 4 });

    const second = await run("deploy", wordService("two"), "--env", "MARK=!", "--workers", "1");
    expect(second).toMatchObject({ code: 0 });
    expect(second.stderr).toMatch(/uploaded [12] of 2 files/);
    expect(await ask("word")).toBe("200 two!");

    const { stdout: got } = await run("deployment", "get", "words");
    expect(got).toMatch(/^status +ready$/m);
    expect(got).toMatch(/^revision +2$/m);
    expect(got).toMatch(/^workers +1 of 1$/m);
    expect(got).toMatch(/^env +MARK$/m);
    expect(got).toMatch(/^endpoints +word \(api\), later \(task\)$/m);
    expect((await run("deployment", "list")).stdout).toMatch(
      /^NAME +STATUS +REVISION +WORKERS +AUTHORIZATION +CHANGED +URL\nwords +ready +2 +1 of 1 +off +2\S+ \S+Z +http:/,
    );

    const back = await run("deployment", "rollback", "words");
    expect(back).toMatchObject({ code: 0 });
    expect(await ask("word")).toBe("200 one!");
    expect((await run("deployment", "revisions", "words")).stdout).toMatch(
      /^REVISION +DIGEST +FILES +SIZE +CREATED +BY\n3 .* serving, back to 1\n2 .*\n1 .*\n$/,
    );
    expect(await run("deployment", "rollback", "words", "--to", "9")).toMatchObject({ code: 4 });

    expect(await ask("later/submit?delay=3600")).toMatch(/^202 /);
    expect((await run("deployment", "stop", "words")).stdout).toMatch(/^status +stopped/m);
    expect(await ask("word")).toMatch(/^503 .*DEPLOYMENT_STOPPED/);
    const refused = await run("deployment", "delete", "words", "--yes");
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toMatch(/has 1 queued .*\n.*deployment delete words --force\n$/);

    const started = await run("deployment", "start", "words");
    expect(started).toMatchObject({ code: 0 });
    expect(await ask("word")).toBe("200 one!");
    expect(await run("deployment", "delete", "words", "--yes", "--force")).toMatchObject({
      code: 0,
      stderr: "Deleted deployment words\n",
    });
    expect(await ask("word")).toMatch(/^401 .*TOKEN_MISSING/);
  });

  it("gets its secrets, and asks for a token once it is told to", async () => {
    const key = join(folder, "key");
    writeFileSync(key, "sesame\n");
    const path = wordService("open ");
    const made = await run("deploy", path, "--secret", `KEY=@${key}`, "-o", "json");
    expect(json(made)).toMatchObject({ settings: { secret_names: ["KEY"] }, status: "ready" });
    expect(made.stdout + made.stderr).not.toContain("sesame");
    expect(await ask("word")).toBe("200 open sesame");

    const changed = await run(
      ...["deployment", "update", "words", "--authorization"],
      ...["--memory", "256Mi", "--workers", "0..3", "--env", "MARK=x"],
    );
    expect(changed.stdout).toMatch(/^authorization +on$/m);
    expect(changed.stdout).toMatch(/^memory +256Mi a worker$/m);
    expect(changed.stdout).toMatch(/ of 0\.\.3$/m);
    expect(await ask("word")).toMatch(/^401 /);
    const { value } = await at.platform.createToken(at.adaCookie, {
      access: ["protected_endpoint"],
      deployments: ["words"],
    });
    const asked = () => ask("word", { authorization: `Bearer ${value}` });
    // New workers have it, and take over when they are ready.
    await expect.poll(asked).toBe("200 open xsesame");
    const cleared = await run("deployment", "update", "words", "--clear-env", "-o", "json");
    expect(json(cleared)).toMatchObject({ settings: { env: {}, memory_mib: 256 } });
    const removed = await run("deploy", path, "--remove-secret", "KEY", "-o", "json");
    expect(json(removed)).toMatchObject({ settings: { secret_names: [] }, revision: 2 });
  });

  it("shows what its workers write", async () => {
    const refused = await run("deploy", wordService("heard"), "--no-authorization");
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toContain("tessera deployment update words --no-authorization");
    const opening = ["deployment", "update", "words", "--no-authorization", "--password-stdin"];
    expect(await at.ada.run(opening, { input: PASSWORD })).toMatchObject({ code: 0 });
    expect(await run("deploy", wordService("heard"), "--no-authorization")).toMatchObject({
      code: 0,
    });
    expect(await ask("word")).toBe("200 heard");
    const { stdout } = await at.ada.run(["deployment", "logs", "words", "--follow"], {
      onStdout: (text) => {
        if (text.includes("asked for heard")) {
          at.ada.interrupt();
        }
      },
    });
    expect(stdout).toMatch(/^2\S+ \S+Z r\d+ \S+\/\S+ .*word: asked for heard$/m);
    expect(await run("deployment", "logs", "nothing")).toMatchObject({ code: 4 });
  });

  it("says why it does not start, and the earlier revision goes on serving", async () => {
    const { revision } = json(await run("deployment", "get", "words", "-o", "json"));
    const broken = write(
      "broken",
      `console.error("looking for the model");
if (process.env.BREAK) { throw new Error("no model here"); }
export default service({ name: "words", endpoints: { word: api({}, () => "never") } });`,
    );
    // It builds, and fails where it is hosted.
    const artifact = join(folder, "broken.tessera");
    expect(await run("build", broken, "--output", artifact)).toMatchObject({ code: 0 });
    const failed = await run("deploy", artifact, "--env", "BREAK=1");
    expect(failed).toMatchObject({ code: 1, stdout: "" });
    expect(failed.stderr).toMatch(/words could not be rolled out: [\s\S]*no model here/);
    expect(failed.stderr).toContain(
      `revision ${revision} goes on serving; tessera deployment logs`,
    );
    expect(await ask("word")).toBe("200 heard");
    const { stdout } = await run("deployment", "get", "words");
    expect(stdout).toMatch(/^status +failed: /m);
    expect(stdout).toMatch(
      new RegExp(`^revision +${revision}, then ${Number(revision) + 1}$`, "m"),
    );
  });

  it("may have large files, of which only new ones are uploaded", async () => {
    const path = write(
      "large",
      `import { statSync } from "node:fs";
export default service({ name: "large", endpoints: {
  size: api({}, () => statSync(new URL("./data/a.bin", import.meta.url)).size),
} });`,
    );
    mkdirSync(join(folder, "large", "data"), { recursive: true });
    for (const name of ["a", "b"]) {
      writeFileSync(join(folder, "large", "data", `${name}.bin`), randomBytes(FILE_BYTES));
    }
    const args = ["deploy", path, "--include", "data"];
    const first = await run(...args);
    expect(first).toMatchObject({ code: 0 });
    expect(first.stderr).toMatch(/uploaded 4 of 4 files, 5\.7 MiB/);
    writeFileSync(join(folder, "large", "data", "b.bin"), "small now");
    const second = await run(...args);
    expect(second).toMatchObject({ code: 0 });
    expect(second.stderr).toMatch(/uploaded 1 of 4 files, 9 B/);
    const asked = await ask("size", { "tessera-deployment": "acme/large" });
    expect(asked).toBe(`200 ${FILE_BYTES}`);
  });

  it("is uploaded on from where it was broken off", async () => {
    const path = write(
      "parts",
      'export default service({ name: "parts", endpoints: { a: api({}, () => 1) } });',
    );
    mkdirSync(join(folder, "parts", "data"), { recursive: true });
    for (let i = 0; i < PARTS; i += 1) {
      writeFileSync(join(folder, "parts", "data", `${i}.bin`), randomBytes(FILE_BYTES / 3));
    }
    const args = ["deploy", path, "--include", "data"];
    at.ada.onStderr = (text) => {
      if (/ [1-9]\d? of \d+ files, /.test(text)) {
        at.ada.interrupt();
      }
    };
    const cut = await at.ada.run(args, { answers: [] });
    at.ada.onStderr = () => {};
    expect(cut).toMatchObject({ code: 130, stdout: "" });
    expect(cut.stderr).toContain("Nothing was deployed.");
    expect(await run("deployment", "get", "parts")).toMatchObject({ code: 4 });
    const { code, stderr } = await run(...args);
    expect(code).toBe(0);
    const [, left] = /uploaded (\d+) of 22 files/.exec(stderr) ?? [];
    expect(Number(left)).toBeGreaterThan(0);
    expect(Number(left)).toBeLessThan(PARTS + 2);
  });
});
