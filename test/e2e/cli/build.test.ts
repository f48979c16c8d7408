import { cpSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { unpackArtifact } from "../../../src/artifacts/unpack.ts";
import type { Streams } from "../../../src/cli/terminal.ts";
import { main } from "../../../src/main.ts";
import { run } from "./program.ts";

const DIGITS = fileURLToPath(new URL("../../../examples/digits/service.ts", import.meta.url));
const WEB = fileURLToPath(new URL("../../fixtures/programs/web", import.meta.url));
const ENDLESS = fileURLToPath(new URL("services/endless.ts", import.meta.url));

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tessera-test-cli-build-"));
});

afterEach(() => rm(folder, { recursive: true }));

describe("tessera build", () => {
  it("writes an artifact named after its digest, and says what is in it", async () => {
    const { code, stdout, stderr } = await run(["build", DIGITS], { cwd: folder });
    expect(stderr).toBe("");
    expect(code).toBe(0);
    const digest = /digest {2}([0-9a-f]{64})/.exec(stdout)?.[1] ?? "";
    const name = `digits-${digest.slice(0, 12)}.tessera`;
    expect(readdirSync(folder)).toEqual([name]);
    expect(stdout).toContain(`file    ${name}`);
    expect(stdout).toMatch(/size {4}[\d.]+ KiB, unpacked [\d.]+ KiB in 3 files/);
    expect(stdout).toMatch(/^ENDPOINT +KIND +TIMEOUT +CONCURRENCY\nclassify +api +60 s +100$/m);
    await unpackArtifact(join(folder, name), join(folder, "unpacked"), { digest });
  });

  it("answers programs in JSON, and writes to the file that they name", async () => {
    const file = join(folder, "some.artifact");
    const { code, stdout } = await run(["build", DIGITS, "--json", "--output", file]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      name: "digits",
      file,
      size: statSync(file).size,
      files: 3,
      endpoints: [{ name: "classify", kind: "api" }, { kind: "task" }, { kind: "task" }],
    });
  });

  it("builds what the tessera.yaml of a folder says, also where that is a program alone", async () => {
    const web = join(folder, "web");
    cpSync(WEB, web, { recursive: true });
    const { code, stdout, stderr } = await run(["build", web, "--json"], { cwd: folder });
    expect([code, stderr]).toEqual([0, ""]);
    const { file, digest, endpoints } = JSON.parse(stdout);
    expect(endpoints).toEqual([{ name: "/", kind: "server" }]);
    await unpackArtifact(file, join(folder, "unpacked"), { digest });
    expect(readdirSync(join(folder, "unpacked"))).toContain("server.js");
    const text = await run(["build", web], { cwd: folder });
    expect(text.stdout).toMatch(/^\/ +server +60 s +50$/m);

    writeFileSync(join(web, "tessera.yaml"), "name: web\n");
    const empty = await run(["build", web], { cwd: folder });
    expect([empty.code, empty.stderr]).toEqual([
      2,
      expect.stringContaining("does not say which file the service is"),
    ]);
    const none = await run(["build", folder], { cwd: folder });
    expect([none.code, none.stderr]).toEqual([2, expect.stringContaining("tessera.yaml")]);
  });

  it("fails with what is wrong, and leaves nothing", async () => {
    const missing = await run(["build", "missing.ts"], { cwd: folder });
    expect(missing.code).toBe(1);
    expect(missing.stderr).toBe("tessera: service file missing.ts does not exist\n");
    const unfit = await run(["build", DIGITS, "--include", "*.onnx"], { cwd: folder });
    expect(unfit.code).toBe(1);
    expect(unfit.stderr).toContain("--include *.onnx fits no file");
    const usage = await run(["build", DIGITS, "--env", "hunter2"], { cwd: folder });
    expect(usage.code).toBe(2);
    expect(usage.stderr).not.toContain("hunter2");
    expect(readdirSync(folder)).toEqual([]);
  });

  it("ends with what it had begun when it is interrupted", async () => {
    const controller = new AbortController();
    const said: string[] = [];
    const stderr = new Writable({
      write(chunk, _encoding, done) {
        said.push(String(chunk));
        if (String(chunk).startsWith("loading")) {
          controller.abort();
        }
        done();
      },
    });
    const streams: Streams = {
      stdin: Readable.from([]),
      stdout: stderr,
      stderr,
      interactive: true,
      interruption: () => ({ signal: controller.signal, [Symbol.dispose]: () => {} }),
    };
    expect(await main(["build", ENDLESS, "--output", folder], { streams })).toBe(130);
    expect(said).toEqual([
      "compiling …\n",
      "looking for the files that it reads …\n",
      "loading it in a worker …\n",
    ]);
    expect(readdirSync(folder)).toEqual([]);
  });
});
