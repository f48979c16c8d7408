import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { npx, programCall } from "../../src/cli/npx.ts";

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
  expect(programCall({})).toBe("tessera");
  expect(programCall({ npm_command: "exec" })).toBe("npx tessera");
});
