import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { npx, programCall } from "../../src/cli/npx.ts";
import { isRunByNpm } from "../../src/config/cloud.ts";

it("names the command where the package is installed, and the package elsewhere", () => {
  expect(npx(fileURLToPath(new URL("../../examples/", import.meta.url)))).toBe("npx tessera");
  const folder = mkdtempSync(join(tmpdir(), "tessera-test-npx-"));
  try {
    expect(npx(folder)).toBe("npx tessera-platform");
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it("names the command as it was run", () => {
  expect([isRunByNpm({}), programCall(false)]).toEqual([false, "tessera"]);
  expect([isRunByNpm({ npm_command: "exec" }), programCall(true)]).toEqual([true, "npx tessera"]);
});
