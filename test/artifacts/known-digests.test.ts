import { createHash } from "node:crypto";
import { chmodSync, linkSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type FileSource, indexFiles, inParts } from "../../src/artifacts/content.ts";
import { KnownDigests } from "../../src/artifacts/known-digests.ts";
import { MAX_PART_BYTES } from "../../src/artifacts/parts.ts";

const NOW = Date.parse("2026-11-28T12:00:00Z");

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tessera-known-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const known = () => KnownDigests.read(join(folder, "cache"), () => NOW);

/** Weights of a part and a byte, changed at a time. */
function writeWeights(byte: number, changed: number): string {
  const path = join(folder, "weights.bin");
  writeFileSync(path, Buffer.alloc(MAX_PART_BYTES + 1, byte));
  utimesSync(path, changed / 1000, changed / 1000);
  return path;
}

/** The index of weights, in the way of a build. */
async function indexed(path: string) {
  return await indexFiles(
    await inParts(new Map<string, FileSource>([["weights.bin", path]])),
    await known(),
  );
}

const digestsOf = (byte: number): string[] =>
  [MAX_PART_BYTES, 1].map((size) =>
    createHash("sha256").update(Buffer.alloc(size, byte)).digest("hex"),
  );

/** The digest of a part whose content would be another one, if it were read. */
async function askedAgain(path: string): Promise<string> {
  return await (await known()).digestOf(
    { path, start: 0, end: MAX_PART_BYTES },
    async () => "read",
  );
}

describe("digests of large files", () => {
  it("are known to the next build while the file is as it was, also after the build linked it", async () => {
    const path = writeWeights(1, NOW - 3_600_000);
    const first = await indexed(path);
    expect(first.map(({ sha256 }) => sha256)).toEqual(digestsOf(1));
    linkSync(path, join(folder, "linked"));
    expect(await askedAgain(path)).toBe(first[0]?.sha256);
    expect(await indexed(path)).toEqual(first);
  });

  it("are read again after a write, in place or by another file at the path", async () => {
    const path = writeWeights(1, NOW - 3_600_000);
    await indexed(path);
    writeWeights(2, NOW - 3_000_000);
    expect((await indexed(path)).map(({ sha256 }) => sha256)).toEqual(digestsOf(2));
    linkSync(path, join(folder, "kept"));
    rmSync(path);
    writeWeights(3, NOW - 3_000_000);
    expect((await indexed(path)).map(({ sha256 }) => sha256)).toEqual(digestsOf(3));
  });

  it("are not noted of a file that was written within the minute, or while it was read", async () => {
    const path = writeWeights(1, NOW - 30_000);
    await indexed(path);
    expect(await askedAgain(path)).toBe("read");
    utimesSync(path, (NOW - 3_600_000) / 1000, (NOW - 3_600_000) / 1000);
    const read = async (): Promise<string> => {
      utimesSync(path, (NOW - 3_500_000) / 1000, (NOW - 3_500_000) / 1000);
      return "torn";
    };
    const digests = await known();
    await digests.digestOf({ path, start: 0, end: MAX_PART_BYTES }, read);
    await digests.save();
    expect(await askedAgain(path)).toBe("read");
  });

  it("are read where the notes are damaged, or cannot be written", async () => {
    const path = writeWeights(1, NOW - 3_600_000);
    await indexed(path);
    writeFileSync(join(folder, "cache", "digests.json"), '{"a": {"stamp": 1}}');
    expect(await askedAgain(path)).toBe("read");
    rmSync(join(folder, "cache"), { recursive: true });
    writeFileSync(join(folder, "cache"), "no folder");
    chmodSync(join(folder, "cache"), 0o400);
    expect((await indexed(path)).map(({ sha256 }) => sha256)).toEqual(digestsOf(1));
  });
});
