import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const ROOT = new URL("../../../", import.meta.url);

it("runs what was built, from any folder", { timeout: 30_000 }, async () => {
  const bin = fileURLToPath(new URL("bin/tessera.js", ROOT));
  const { version } = JSON.parse(readFileSync(new URL("package.json", ROOT), "utf8")) as {
    version: string;
  };
  const { stdout } = await promisify(execFile)(process.execPath, [bin, "--version"], { cwd: "/" });
  expect(stdout.trim()).toBe(version);
});
