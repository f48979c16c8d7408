import { createHash, randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { gunzipSync, gzipSync } from "node:zlib";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createIndex, digestOf, writeIndex } from "../../src/artifacts/index-file.ts";
import { packArtifact } from "../../src/artifacts/pack.ts";
import { readArtifact } from "../../src/artifacts/read.ts";
import { assembleArtifact, unpackArtifact } from "../../src/artifacts/unpack.ts";
import { artifactOf, type Entry, fileOf, indexText, inParts, SERVICE, tarOf } from "./hostile.ts";

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tessera-test-unpack-"));
});

afterEach(() => rm(folder, { recursive: true }));

const ENTRIES: readonly Entry[] = [
  { path: "data/words.txt", content: "words" },
  { path: "service.js", content: "export default 1;" },
];
const TEXT = indexText(ENTRIES);

/** Tries to unpack; nothing may be left of what was refused. */
async function unpack(bytes: Uint8Array, digest?: string) {
  const target = join(folder, "target");
  try {
    return await unpackArtifact(inParts(bytes), target, digest === undefined ? {} : { digest });
  } catch (err) {
    expect(readdirSync(folder)).toEqual([]);
    throw err;
  }
}

describe("an artifact", () => {
  it("comes out as it went in, with long and foreign names and every size", async () => {
    const contents = new Map<string, Buffer>([
      ["service.js", Buffer.from("export default 1;")],
      ["empty", Buffer.alloc(0)],
      ["block", randomBytes(512)],
      ["large", randomBytes(300_000)],
      [`${"deep/".repeat(60)}file.txt`, Buffer.from("deep")],
      ["ünïcode/文.txt", Buffer.from("foreign")],
    ]);
    const files = [...contents].map(([path, bytes]) => ({
      ...fileOf(path, bytes),
      executable: path === "block",
    }));
    const index = createIndex(SERVICE, files);
    const digest = digestOf(writeIndex(index));
    const packed = join(folder, "packed");
    await packArtifact({ index, digest, files: contents, warnings: [] }, packed);
    const target = join(folder, "target");
    expect(await unpackArtifact(packed, target, { digest })).toEqual(index);
    for (const [path, bytes] of contents) {
      expect(readFileSync(join(target, path)).equals(bytes)).toBe(true);
    }
    expect(statSync(join(target, "block")).mode & 0o100).toBe(0o100);
    expect(statSync(join(target, "large")).mode & 0o111).toBe(0);
    expect(readFileSync(join(target, "tessera.json"), "utf8")).toBe(writeIndex(index));
    expect(readdirSync(folder).toSorted()).toEqual(["packed", "target"]);
  });

  it("is assembled from files that come by their digest", async () => {
    const store = new Map(
      ENTRIES.map(({ content = "" }) => [
        createHash("sha256").update(content).digest("hex"),
        Buffer.from(content),
      ]),
    );
    const target = join(folder, "target");
    const open = ({ sha256 }: { sha256: string }) => Readable.from([store.get(sha256)]);
    await assembleArtifact(TEXT, { open }, target);
    expect(readFileSync(join(target, "data/words.txt"), "utf8")).toBe("words");
    // Once more, as two that start at the same time do.
    await assembleArtifact(TEXT, { open }, target);
    store.set(fileOf("", "words").sha256, Buffer.from("swrod"));
    await expect(assembleArtifact(TEXT, { open }, join(folder, "other"))).rejects.toThrow(
      '"data/words.txt" is not what the index says',
    );
    expect(readdirSync(folder)).toEqual(["target"]);
  });

  it("does not replace what is something else", async () => {
    await mkdir(join(folder, "target"));
    await writeFile(join(folder, "target", "mine"), "");
    await expect(
      unpackArtifact(inParts(artifactOf(TEXT, ENTRIES)), join(folder, "target")),
    ).rejects.toThrow("exists and holds something else");
    expect(readdirSync(join(folder, "target"))).toEqual(["mine"]);
  });

  it("can be read without being unpacked", async () => {
    await using reader = await readArtifact(inParts(artifactOf(TEXT, ENTRIES)));
    expect(reader.digest).toBe(digestOf(TEXT));
    expect(reader.index.files.map(({ path }) => path)).toEqual(["data/words.txt", "service.js"]);
  });

  it("that another program packed again is the same", async () => {
    // With the padding of tar programs.
    const bytes = gunzipSync(artifactOf(TEXT, ENTRIES));
    const padded = Buffer.concat([bytes, Buffer.alloc(10_240 - (bytes.length % 10_240))]);
    await unpack(gzipSync(padded), digestOf(TEXT));
  });
});

describe("an artifact is refused", () => {
  it("when it is another than the one asked for", async () => {
    await expect(unpack(artifactOf(TEXT, ENTRIES), "0".repeat(64))).rejects.toThrow(
      `the artifact is another one: its digest is ${digestOf(TEXT)}`,
    );
  });

  it("when it is cut anywhere", async () => {
    const bytes = artifactOf(TEXT, ENTRIES);
    for (let length = 0; length < bytes.length; length += 37) {
      await expect(unpack(bytes.subarray(0, length))).rejects.toThrow(/truncated|damaged/);
    }
  });

  it("when it is cut before it was compressed", async () => {
    const bytes = gunzipSync(artifactOf(TEXT, ENTRIES));
    for (let length = 0; length < bytes.length - 1024; length += 511) {
      await expect(unpack(gzipSync(bytes.subarray(0, length)))).rejects.toThrow("truncated");
    }
  });

  it.each<[string, readonly Entry[], string]>([
    [
      "a file was changed",
      [{ path: "data/words.txt", content: "swrod" }],
      "is not what the index says: it was changed or damaged",
    ],
    [
      "a file has another size",
      [{ path: "data/words.txt", content: "more words" }],
      "has 10 bytes, and 5 by the index",
    ],
    [
      "a file is missing",
      [],
      '"service.js" is in the artifact where its index has "data/words.txt"',
    ],
    [
      "a file is a link",
      [{ path: "data/words.txt", type: "SymbolicLink", linkpath: "/etc/passwd" }],
      "of the kind SymbolicLink",
    ],
    [
      "a file is a hard link",
      [{ path: "data/words.txt", type: "Link", linkpath: "/etc/passwd" }],
      "of the kind Link",
    ],
    [
      "a file is a device",
      [{ path: "data/words.txt", type: "CharacterDevice" }],
      "of the kind CharacterDevice",
    ],
    [
      "a file is a folder",
      [{ path: "data/words.txt", type: "Directory" }],
      "of the kind Directory",
    ],
    [
      "a file lies outside",
      [{ path: "../words.txt", content: "words" }],
      '"../words.txt" is in the artifact where',
    ],
    [
      "a path is absolute",
      [{ path: "/data/words.txt", content: "words" }],
      '"/data/words.txt" is in the artifact where',
    ],
  ])("when %s", async (_what, first, fault) => {
    await expect(unpack(artifactOf(TEXT, [...first, ...ENTRIES.slice(1)]))).rejects.toThrow(fault);
  });

  it("when it has more than its index", async () => {
    const more = [...ENTRIES, { path: "zzz", content: "" }];
    await expect(unpack(artifactOf(TEXT, more))).rejects.toThrow(
      '"zzz" is in the artifact, but not in its index',
    );
    const bytes = Buffer.concat([gunzipSync(artifactOf(TEXT, ENTRIES)), Buffer.from("more")]);
    await expect(unpack(gzipSync(bytes))).rejects.toThrow("goes on after its end");
  });

  it("when it lacks the last of its files", async () => {
    await expect(unpack(artifactOf(TEXT, ENTRIES.slice(0, 1)))).rejects.toThrow(
      'lacks "service.js", which its index has',
    );
  });

  it.each([
    ["no index", gzipSync(tarOf(ENTRIES)), "does not begin with tessera.json"],
    ["nothing in it", gzipSync(tarOf([])), "does not begin with tessera.json"],
    ["no compression", tarOf(ENTRIES), "was not made by tessera build"],
    ["an index that is no text", artifactOf("", []), "is not JSON"],
    ["noise in it", gzipSync(randomBytes(2_000)), "checksum is wrong"],
  ])("when there is %s", async (_what, bytes, fault) => {
    await expect(unpack(bytes)).rejects.toThrow(fault);
  });

  it("when it blows up, before that is written or held", async () => {
    const bomb = Buffer.alloc(16 * 1024 ** 2);
    const index = { path: "tessera.json", content: bomb };
    await expect(unpack(gzipSync(tarOf([index])))).rejects.toThrow("is larger than 8388608 bytes");
    const file = { path: "data/words.txt", content: bomb };
    await expect(unpack(artifactOf(TEXT, [file]))).rejects.toThrow("and 5 by the index");
    const tail = Buffer.concat([gunzipSync(artifactOf(TEXT, ENTRIES)), bomb]);
    await expect(unpack(gzipSync(tail))).rejects.toThrow("goes on after its end");
  });

  it("whatever is in it, without a trace outside its folder", async () => {
    const path = fc.oneof(
      fc.constantFrom(
        "service.js",
        "data/words.txt",
        "../up",
        "/tmp/x",
        "a/../../b",
        "tessera.json",
        "A",
        "a",
      ),
      fc.string({ minLength: 1, maxLength: 40 }),
    );
    const entry = fc.record({
      path,
      content: fc.string({ maxLength: 600 }),
      type: fc.constantFrom(
        "File" as const,
        "SymbolicLink" as const,
        "Link" as const,
        "Directory" as const,
      ),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(entry, { maxLength: 4 }),
        fc.boolean(),
        async (entries, announced) => {
          const linked = entries.map((it) =>
            /Link$/.test(it.type) ? { ...it, content: "", linkpath: "/tmp" } : it,
          );
          const bytes = artifactOf(indexText(announced ? linked : ENTRIES), linked);
          const before = readdirSync(tmpdir()).filter((name) => name === "x" || name === "up");
          try {
            await unpack(bytes);
            await rm(join(folder, "target"), { recursive: true });
          } catch (err) {
            expect((err as Error).name).toBe("ArtifactError");
          }
          expect(readdirSync(folder)).toEqual([]);
          expect(existsSync(join(folder, "../up"))).toBe(false);
          expect(readdirSync(tmpdir()).filter((name) => name === "x" || name === "up")).toEqual(
            before,
          );
        },
      ),
      { numRuns: 200 },
    );
  });

  it("with any byte changed, or is still what it was", async () => {
    const bytes = gunzipSync(artifactOf(TEXT, ENTRIES));
    await fc.assert(
      fc.asyncProperty(
        fc.nat(bytes.length - 1),
        fc.integer({ min: 1, max: 255 }),
        async (at, flip) => {
          const changed = Buffer.from(bytes);
          changed[at] = (changed[at] ?? 0) ^ flip;
          try {
            await unpack(gzipSync(changed), digestOf(TEXT));
            expect(readFileSync(join(folder, "target/data/words.txt"), "utf8")).toBe("words");
            await rm(join(folder, "target"), { recursive: true });
          } catch (err) {
            expect((err as Error).name).toBe("ArtifactError");
          }
        },
      ),
      { numRuns: 200 },
    );
  });
});
