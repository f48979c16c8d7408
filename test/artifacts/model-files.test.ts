import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readModelFolder } from "../../src/artifacts/model-files.ts";
import { createModelIndex, verifyModelIndex } from "../../src/artifacts/model-index.ts";
import { MAX_PART_BYTES } from "../../src/artifacts/parts.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tessera-model-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function readAll(chunks: AsyncIterable<Uint8Array>): Promise<number> {
  let length = 0;
  for await (const chunk of chunks) {
    length += chunk.length;
  }
  return length;
}

describe("a folder as a model", () => {
  it("has its files by path, and large ones in parts", async () => {
    mkdirSync(join(folder, "sub"));
    writeFileSync(join(folder, "sub", "config.json"), "{}");
    writeFileSync(join(folder, "weights.safetensors"), Buffer.alloc(MAX_PART_BYTES + 1));
    const read = await readModelFolder(folder);
    expect(read.paths).toEqual(["weights.safetensors", "sub/config.json"]);
    expect(read.index.files.map(({ path, size }) => [path, size])).toEqual([
      [".parts/weights.safetensors/0000", MAX_PART_BYTES],
      [".parts/weights.safetensors/0001", 1],
      ["sub/config.json", 2],
    ]);
    expect(verifyModelIndex(read.text)).toMatchObject({ digest: read.digest, warnings: [] });
  });

  it("tells of weights that were changed between two parts", async () => {
    const path = join(folder, "weights.safetensors");
    writeFileSync(path, Buffer.alloc(MAX_PART_BYTES + 1));
    const { index, open } = await readModelFolder(folder);
    const [first, second] = index.files;
    expect(first && (await readAll(open(first)))).toBe(MAX_PART_BYTES);
    writeFileSync(path, Buffer.alloc(MAX_PART_BYTES + 1, 1));
    await expect(second && readAll(open(second))).rejects.toThrow("changed or damaged");
  });

  it("refuses links, but for those of a snapshot of Hugging Face", async () => {
    const cache = join(folder, "models--acme--reader");
    const snapshot = join(cache, "snapshots", "c0ffee");
    mkdirSync(snapshot, { recursive: true });
    mkdirSync(join(cache, "blobs"));
    writeFileSync(join(cache, "blobs", "abc"), "weights");
    symlinkSync("../../blobs/abc", join(snapshot, "weights.safetensors"));
    expect((await readModelFolder(snapshot)).paths).toEqual(["weights.safetensors"]);
    symlinkSync("/etc/passwd", join(snapshot, "passwd"));
    await expect(readModelFolder(snapshot)).rejects.toThrow("such as a link");
  });

  it("refuses pointers of Git LFS, names that differ in case, and an empty folder", async () => {
    await expect(readModelFolder(folder)).rejects.toThrow("has no files");
    writeFileSync(join(folder, "config.json"), "{}");
    writeFileSync(join(folder, "CONFIG.json"), "{}");
    await expect(readModelFolder(folder)).rejects.toThrow("differ only in case");
    rmSync(join(folder, "CONFIG.json"));
    const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n";
    writeFileSync(join(folder, "weights.bin"), pointer);
    await expect(readModelFolder(folder)).rejects.toThrow("run git lfs pull");
  });
});

describe("the index of a model", () => {
  const file = { size: 1, sha256: "0".repeat(64), executable: false };

  it("warns of files that may hold pickled objects", () => {
    const { warnings } = createModelIndex([
      { ...file, path: "pytorch_model.bin" },
      { ...file, path: "model.safetensors" },
    ]);
    expect(warnings).toEqual([expect.stringContaining("pytorch_model.bin may hold pickled")]);
  });

  it("is refused in another form, of another kind, and with what paths may not be", () => {
    const text = createModelIndex([{ ...file, path: "a" }]).text;
    expect(verifyModelIndex(text).paths).toEqual(["a"]);
    expect(() => verifyModelIndex(` ${text}`)).toThrow("not in the one form");
    expect(() => verifyModelIndex("{")).toThrow("not JSON");
    expect(() => verifyModelIndex("null")).toThrow("format is 4");
    expect(() => verifyModelIndex(text.replace('"format":4', '"format":1'))).toThrow("format is 4");
    expect(() => verifyModelIndex('{"files":[],"format":4,"kind":"model"}')).toThrow("files");
    for (const path of ["../a", "/a", "a\\b", "tessera.json", ".parts/a"]) {
      expect(() => createModelIndex([{ ...file, path }])).toThrow();
    }
  });

  it("takes 40,000 tiny files", () => {
    const files = Array.from({ length: 40_000 }, (_, n) => ({ ...file, path: `tiny/${n}` }));
    expect(createModelIndex(files).paths).toHaveLength(40_000);
  });
});
