import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { serveService } from "../../../src/app/serve.ts";
import { readServeConfig } from "../../../src/config/serve.ts";
import { refusal } from "./refusal.ts";
import { fixture, type Served, serve } from "./served.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(realpathSync(tmpdir()), "tessera-allowed-"));
  writeFileSync(join(folder, "model.txt"), "weights");
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("a function that does what is not allowed", () => {
  let served: Served;
  beforeAll(async () => {
    served = await serve("escapes");
  });
  afterAll(() => served.stop());

  const model = () => join(folder, "model.txt");
  it.each([
    ["read a file", model, () => `tessera serve --allow-read ${model()} allows it`],
    ["write a file", model, () => "os.tmpdir()"],
    ["start a thread", model, () => "tessera serve --allow-workers allows"],
    ["load native code", model, () => "tessera serve --allow-addons allows"],
    ["start a process", model, () => "tessera serve --allow-processes allows"],
  ])("is told what would allow it: %s", async (what, path, words) => {
    const found = refusal(await served.post("/careless", { what, path: path() }));
    expect(found).toMatchObject({ status: 500, reason: "CALL_FAILED" });
    expect(found.message).toContain(words());
    expect(found.message).not.toContain("--allow-fs");
  });
});

describe("a service that does what is not allowed while it is loaded", () => {
  it("is refused with what would allow it", async () => {
    const path = join(folder, "service.ts");
    writeFileSync(
      path,
      'import { readFileSync } from "node:fs";\nreadFileSync("/etc/hostname");\nexport default 1;\n',
    );
    const { config } = readServeConfig(path, { port: "0", workers: "1" }, {});
    await expect(
      serveService({ ...config, logLevel: "silent" }, { token: undefined }),
    ).rejects.toThrow(/service\.ts:2:.* --allow-read \/etc\/hostname allows it/);
  });
});

it("what the operator allows is allowed, and no more", async () => {
  const flags = {
    port: "0",
    workers: "1",
    allowRead: [folder],
    allowAddons: true,
    allowWorkers: true,
    allowProcesses: true,
    model: [`qwen=${folder}`],
    env: ["API_KEY=a key"],
  };
  const { config, secrets } = readServeConfig(fixture("escapes.ts"), flags, {});
  const service = await serveService({ ...config, logLevel: "silent" }, secrets);
  try {
    const ask = async (path: string, values: object) => {
      const res = await fetch(`http://127.0.0.1:${service.port}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(values),
      });
      return res.json();
    };
    const attempt = (what: string, path = "") => ask("/attempt", { what, path });
    expect(await attempt("read a file", join(folder, "model.txt"))).toEqual({ done: "weights" });
    expect(await attempt("start a thread")).toEqual({ done: expect.any(String) });
    expect(await attempt("start a process")).toEqual({ done: expect.any(String) });
    const { TESSERA_MODELS: models } = (await ask("/environment", {})) as Record<string, string>;
    expect(JSON.parse(models ?? "")).toEqual({ qwen: folder });
    // There is no such addon, but it is looked for.
    expect(await attempt("load native code")).toEqual({ refused: "ERR_DLOPEN_FAILED" });
    expect(await attempt("write a file", join(folder, "model.txt"))).toMatchObject({
      refused: "ERR_ACCESS_DENIED",
    });
    expect(await attempt("read a file", "/etc/hostname")).toMatchObject({
      refused: "ERR_ACCESS_DENIED",
    });
    expect(await ask("/environment", {})).toMatchObject({ API_KEY: "a key" });
  } finally {
    await service.stop();
  }
});
