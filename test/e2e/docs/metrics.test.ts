/** The service of docs/metrics.md, checked and served as it stands there. */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { serveService } from "../../../src/app/serve.ts";
import { readServeConfig } from "../../../src/config/serve.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const PAGE = readFileSync(join(ROOT, "docs/metrics.md"), "utf8");
const TSC = join(ROOT, "node_modules/typescript/bin/tsc");

let folder: string;
beforeAll(() => {
  // In the project, where it finds its packages.
  folder = mkdtempSync(join(ROOT, "node_modules/.docs-"));
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  const [, program = ""] = /```ts\n([\s\S]*?)```/.exec(PAGE) ?? [];
  writeFileSync(join(folder, "service.ts"), program);
});
afterAll(() => rmSync(folder, { recursive: true }));

it("the service of the page is right, and counts what the page says", async () => {
  const tsconfig = { extends: join(ROOT, "tsconfig.json"), include: ["service.ts"] };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(tsconfig));
  const checked = promisify(execFile)(process.execPath, [TSC, "-p", folder]);
  await checked.catch((err) => expect.fail(err.stdout));

  const path = join(folder, "service.ts");
  const { config } = readServeConfig(path, { port: "0", workers: "1" }, {});
  const served = await serveService({ ...config, logLevel: "silent" }, { token: undefined });
  try {
    const url = `http://127.0.0.1:${served.port}`;
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify({ text: "three short words" });
    const called = await fetch(`${url}/read`, { method: "POST", headers, body });
    expect(called.ok, await called.text()).toBe(true);
    const text = await (await fetch(`${url}/metrics`)).text();
    expect(text).toMatch(
      /^tokens_total\{deployment="reader",endpoint="read",model="small",.*\} 3$/m,
    );
    expect(text).toMatch(/^models_loaded\{deployment="reader",node=.*\} 1$/m);
    expect(text).toMatch(/^score_bucket\{.*le="0\.99".*\} 1$/m);
  } finally {
    await served.stop();
  }
});
