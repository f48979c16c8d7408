import { existsSync, mkdtempSync, readFileSync, rmSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";
import { buildArtifact } from "../../src/artifacts/build.ts";
import { loadArtifact } from "../../src/artifacts/load.ts";
import { packArtifact } from "../../src/artifacts/pack.ts";

const DIGITS = fileURLToPath(new URL("../../examples/digits/service.ts", import.meta.url));

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tessera-test-load-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

it("reads what was packed, and removes its files in the end", async () => {
  const built = await buildArtifact(DIGITS);
  const path = join(folder, "digits.tessera");
  await packArtifact(built, path);
  let weights: string;
  {
    await using loaded = await loadArtifact(path);
    expect(loaded.index).toEqual(built.index);
    expect(loaded.digest).toBe(built.digest);
    weights = String(loaded.files.get("weights.bin"));
    expect(readFileSync(weights)).toEqual(
      readFileSync(new URL("../../examples/digits/weights.bin", import.meta.url)),
    );
  }
  expect(existsSync(weights)).toBe(false);
  truncateSync(path, 1_000);
  await expect(loadArtifact(path)).rejects.toThrow("truncated");
});
