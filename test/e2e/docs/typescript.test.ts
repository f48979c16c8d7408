/** The programs of docs/typescript.md, run as they stand there. */
import { execFile } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { serveService } from "../../../src/app/serve.ts";
import { readServeConfig } from "../../../src/config/serve.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const PAGE = readFileSync(join(ROOT, "docs/typescript.md"), "utf8");
const TSC = join(ROOT, "node_modules/typescript/bin/tsc");
const TOKEN = "a-token-for-readers";

/** Programs, each with what it writes. */
const PROGRAMS = [...PAGE.matchAll(/```ts\n([\s\S]*?)```\n\n```text\n([\s\S]*?)```/g)];

const run = promisify(execFile);

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "tessera-docs-"));
  mkdirSync(join(folder, "node_modules/tessera-platform"), { recursive: true });
  const exports = { ".": "./src/sdk/index.ts", "./client": "./src/client/index.ts" };
  const manifest = { name: "tessera-platform", type: "module", exports };
  writeFileSync(
    join(folder, "node_modules/tessera-platform/package.json"),
    JSON.stringify(manifest),
  );
  for (const part of ["src", "gen"]) {
    symlinkSync(join(ROOT, part), join(folder, "node_modules/tessera-platform", part));
  }
  for (const name of ["zod", "@types"]) {
    symlinkSync(join(ROOT, "node_modules", name), join(folder, "node_modules", name));
  }
});
afterAll(() => rmSync(folder, { recursive: true }));

it.each(["summarizer", "digits"])(
  "the program for examples/%s does what the page says",
  async (example) => {
    const [, program = "", output] =
      PROGRAMS.find(([, program]) =>
        program?.includes(example === "digits" ? "Digits" : "Summarizer"),
      ) ?? [];
    const own = join(folder, example);
    cpSync(join(ROOT, "examples", example), own, { recursive: true });
    writeFileSync(join(own, "package.json"), '{"type":"module"}');
    writeFileSync(join(own, "program.ts"), program);
    const tsconfig = { extends: join(ROOT, "tsconfig.json"), include: ["program.ts"] };
    writeFileSync(join(own, "tsconfig.json"), JSON.stringify(tsconfig));
    await run(process.execPath, [TSC, "-p", own]).catch((err) => expect.fail(err.stdout));

    const path = join(ROOT, "examples", example, "service.ts");
    const { config } = readServeConfig(path, { port: "0", workers: "1" }, {});
    const served = await serveService({ ...config, logLevel: "silent" }, { token: TOKEN });
    try {
      const { stdout } = await run(process.execPath, ["program.ts"], {
        cwd: own,
        env: { TESSERA_URL: `http://127.0.0.1:${served.port}`, TESSERA_TOKEN: TOKEN },
      });
      expect(stdout).toBe(output);
    } finally {
      await served.stop();
    }
  },
);

it("the program passes the type checker with the options that the page names", async () => {
  const own = join(folder, "checked");
  cpSync(join(ROOT, "examples/summarizer"), own, { recursive: true });
  writeFileSync(join(own, "package.json"), '{"type":"module"}');
  writeFileSync(join(own, "program.ts"), PROGRAMS[0]?.[1] ?? "");
  const [, options = ""] = /^npx tsc (.+)$/m.exec(PAGE) ?? [];
  expect(options).toMatch(/--types node program\.ts$/);
  // The package is its source here, whose own settings are stricter than those of the page.
  const settings = ["--exactOptionalPropertyTypes", "--skipLibCheck", "--ignoreConfig"];
  await run(process.execPath, [TSC, ...settings, ...options.split(" ")], { cwd: own }).catch(
    (err) => expect.fail(err.stdout),
  );
}, 60_000);

it("every program of the page is among them", () => {
  expect(PROGRAMS).toHaveLength([...PAGE.matchAll(/```ts\n/g)].length);
});
