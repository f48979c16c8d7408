/** The files of an artifact where a build loads it. */
import { randomBytes } from "node:crypto";
import {
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { indexFiles, inParts, writeContent } from "../../src/artifacts/content.ts";
import { MAX_PART_BYTES } from "../../src/artifacts/parts.ts";

describe("the folder of an artifact that is loaded by a build", () => {
  let home: string;
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), "tessera-content-"));
  });
  afterEach(() => rmSync(home, { recursive: true }));

  it("has large files as links to those of the author, whole, and copies of the others", async () => {
    const [weights, shards] = [join(home, "weights.bin"), join(home, "shards.bin")];
    writeFileSync(weights, "");
    truncateSync(weights, MAX_PART_BYTES + 1);
    writeFileSync(shards, randomBytes(2 * 1024 ** 2));
    symlinkSync(shards, join(home, "linked.bin"));
    const content = await inParts(
      new Map<string, string | Uint8Array>([
        ["weights.bin", weights],
        ["linked.bin", join(home, "linked.bin")],
        ["small.txt", Buffer.from("small")],
      ]),
    );
    const folder = join(home, "artifact");
    await writeContent(await indexFiles(content), content, folder);
    const number = (path: string): number => statSync(path).ino;
    expect(number(join(folder, "weights.bin"))).toBe(number(weights));
    expect(number(join(folder, "linked.bin"))).toBe(number(shards));
    expect(readFileSync(join(folder, "small.txt"), "utf8")).toBe("small");
    // What is removed is the link.
    rmSync(folder, { recursive: true });
    expect(statSync(weights)).toMatchObject({ size: MAX_PART_BYTES + 1, nlink: 1 });
  });
});
