import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { indexFiles, inParts, openSource } from "../../src/artifacts/content.ts";
import { createIndex, writeIndex } from "../../src/artifacts/index-file.ts";
import { MAX_PART_BYTES, placed } from "../../src/artifacts/parts.ts";
import { assembleArtifact } from "../../src/artifacts/unpack.ts";

const MANIFEST = { name: "one", endpoints: [] };

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "tessera-parts-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const digest = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** The content of an artifact with one large file. */
async function withWeights(weights: Buffer, code = "1") {
  const path = join(folder, `weights-${digest(weights).slice(0, 8)}`);
  writeFileSync(path, weights);
  const content = await inParts(
    new Map<string, string | Uint8Array>([
      ["service.js", Buffer.from(code)],
      ["models/weights.bin", path],
    ]),
  );
  const index = createIndex(MANIFEST, await indexFiles(content));
  return { content, index };
}

describe("a large file of an artifact", () => {
  it("is stored in parts, and unpacked whole", async () => {
    const weights = randomBytes(2 * MAX_PART_BYTES + 1_000);
    const { content, index } = await withWeights(weights);
    expect(index.files.map(({ path, size }) => [path, size])).toEqual([
      [".parts/models/weights.bin/0000", MAX_PART_BYTES],
      [".parts/models/weights.bin/0001", MAX_PART_BYTES],
      [".parts/models/weights.bin/0002", 1_000],
      ["service.js", 1],
    ]);
    const unpacked = join(folder, "unpacked");
    await assembleArtifact(
      writeIndex(index),
      { open: ({ path }) => openSource(content.get(path) ?? "") },
      unpacked,
    );
    expect(readdirSync(unpacked).sort()).toEqual(["models", "service.js", "tessera.json"]);
    expect(digest(readFileSync(join(unpacked, "models/weights.bin")))).toBe(digest(weights));
  });

  it("shares with the next revision all parts that have not changed", async () => {
    const weights = randomBytes(2 * MAX_PART_BYTES);
    const { index: first } = await withWeights(weights);
    weights[MAX_PART_BYTES] = (weights[MAX_PART_BYTES] ?? 0) ^ 1;
    const { index: second } = await withWeights(weights, "2");
    const digests = (index: typeof first) => new Set(index.files.map(({ sha256 }) => sha256));
    expect([...digests(first)].filter((each) => digests(second).has(each))).toHaveLength(1);
  });

  it.each<[string, string[]]>([
    ["that begin late", [".parts/a/0001"]],
    ["with a gap", [".parts/a/0000", ".parts/a/0002"]],
    ["without a number", [".parts/a/first"]],
    ["of a file that is there", [".parts/a/0000", "a"]],
    ["that lie in a file", [".parts/a/b/0000", "a"]],
    ["that lead out", [".parts/../a/0000"]],
  ])("is refused as parts %s", (_, paths) => {
    const facts = { size: 1, sha256: digest(Buffer.from("1")), executable: false };
    const files = [...paths, "service.js"].map((path) => ({ path, ...facts }));
    expect(() => createIndex(MANIFEST, files)).toThrow();
  });

  it("of 9,999 parts has each at its place", () => {
    const files = Array.from({ length: 9_999 }, (_, at) => ({
      path: `.parts/a/${String(at).padStart(4, "0")}`,
      size: 1,
    }));
    expect(placed(files).at(-1)).toMatchObject({ path: "a", start: 9_998 });
  });

  it("has no part of another name", async () => {
    const content = new Map([[".parts/x", Buffer.from("1")]]);
    await expect(inParts(content)).rejects.toThrow("rename its folder");
  });
});
