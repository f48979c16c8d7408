import { createHash, randomBytes } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { BuiltArtifact } from "../../src/artifacts/build-options.ts";
import { digestOf, writeIndex } from "../../src/artifacts/index-file.ts";
import { openFile } from "../../src/artifacts/pack.ts";
import { MAX_PART_BYTES } from "../../src/artifacts/parts.ts";
import { ArtifactCache } from "../../src/hosting/artifact-cache.ts";
import { FolderBlobStore } from "../../src/storage/blobs/folder.ts";
import { createIdSource } from "../../src/tasks/id.ts";
import { artifact } from "../e2e/hosting/world.ts";
import { Folder } from "../e2e/start/platform.ts";

const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

describe("the artifacts of a node", () => {
  let folder: Folder;
  let blobs: FolderBlobStore;
  let built: BuiltArtifact;
  let stored: { readonly sha256: string; readonly sizeBytes: number; readonly blobId: string }[];
  let resources: AsyncDisposableStack;

  beforeEach(async () => {
    resources = new AsyncDisposableStack();
    folder = new Folder();
    resources.defer(() => folder[Symbol.dispose]());
    blobs = new FolderBlobStore(join(folder.path, "blobs"));
    await blobs.start();
    built = await artifact();
    const newId = createIdSource();
    stored = [];
    for (const file of built.index.files) {
      const blobId = newId();
      await blobs.write(blobId, openFile(built, file));
      stored.push({ sha256: file.sha256, sizeBytes: file.size, blobId });
    }
  });
  afterEach(() => resources.disposeAsync());

  const open = async (): Promise<ArtifactCache> => {
    const artifacts = resources.use(
      new ArtifactCache({
        folder: join(folder.path, "artifacts"),
        hosting: {
          getIndex: async ({ digest }) =>
            digest === built.digest ? writeIndex(built.index) : undefined,
          listArtifactFiles: async () => stored,
        },
        blobs,
        log: pino({ level: "silent" }),
      }),
    );
    await artifacts.start();
    return artifacts;
  };
  const unpacked = async (artifacts: ArtifactCache): Promise<string[]> =>
    (await readdir(artifacts.folder)).filter((name) => /^[0-9a-f]{64}/.test(name));

  it("are shared by those who hold them at once, and stay while anybody does", async () => {
    const artifacts = await open();
    const [one, other] = await Promise.all([
      artifacts.hold("a", built.digest),
      artifacts.hold("b", built.digest),
    ]);
    expect(one.servicePath).toBe(other.servicePath);
    expect(one.index.name).toBe("echo");
    one.release();
    one.release();
    expect(await artifacts.sweep()).toBe(0);
    other.release();
    expect(await artifacts.sweep()).toBe(1);
    expect(await unpacked(artifacts)).toEqual([]);
    const again = await artifacts.hold("a", built.digest);
    expect(readFileSync(again.servicePath, "utf8").length).toBeGreaterThan(0);
  });

  it("of an earlier life are used when they are whole, and fetched again when they are not", async () => {
    const first = await open();
    const { servicePath } = await first.hold("a", built.digest);
    const whole = readFileSync(servicePath);
    await first[Symbol.asyncDispose]();
    await blobs.delete(stored.map(({ blobId }) => blobId));
    const second = await open();
    const held = await second.hold("a", built.digest);
    expect(held.servicePath).toBe(servicePath);
    expect(await held.readCode()).toBe(whole.toString());
    await second[Symbol.asyncDispose]();
    writeFileSync(servicePath, Buffer.concat([whole, Buffer.from("\nevil()")]));
    const third = await open();
    const damaged = await third.hold("a", built.digest);
    await expect(damaged.readCode()).rejects.toThrow("is not in the blob store");
    expect(await unpacked(third)).toEqual([]);
  });

  it("of an earlier life that are damaged run nobody's code, and are whole for the next worker", async () => {
    const first = await open();
    const { servicePath } = await first.hold("a", built.digest);
    const whole = readFileSync(servicePath);
    await first[Symbol.asyncDispose]();
    writeFileSync(servicePath, Buffer.concat([whole, Buffer.from("\nevil()")]));
    const second = await open();
    const [one, other] = await Promise.all([
      second.hold("a", built.digest),
      second.hold("b", built.digest),
    ]);
    const outcomes = await Promise.allSettled([one.readCode(), other.readCode()]);
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(await one.readCode()).toBe(whole.toString());
    expect(await other.readCode()).toBe(whole.toString());
  });

  /** Two revisions with the same weights, of three parts together and of one, and other code. */
  async function revisions() {
    const weights = randomBytes(2 * MAX_PART_BYTES + 1_000);
    const content = new Map<string, Buffer>([["small.bin", randomBytes(1_000)]]);
    for (let part = 0; part * MAX_PART_BYTES < weights.length; part += 1) {
      const bytes = weights.subarray(part * MAX_PART_BYTES, (part + 1) * MAX_PART_BYTES);
      content.set(`.parts/weights.bin/000${part}`, bytes);
    }
    content.set("middle.bin", randomBytes(2 * 1024 ** 2));
    const made = ["one", "two"].map((code) => {
      const files = [...content, ["service.js", Buffer.from(code)] as const]
        .map(([path, bytes]) => ({ path, size: bytes.length, sha256: sha256(bytes) }))
        .map((file) => ({ ...file, executable: false }))
        .sort((a, b) => (a.path < b.path ? -1 : 1));
      const text = writeIndex({ ...built.index, files, entry: "service.js" });
      return { text, digest: digestOf(text), files };
    });
    const newId = createIdSource();
    const put = new Map<string, string>();
    for (const bytes of [...content.values(), Buffer.from("one"), Buffer.from("two")]) {
      const blobId = newId();
      await blobs.write(blobId, [bytes] as never);
      put.set(sha256(bytes), blobId);
    }
    let read = 0;
    const openAgain = async (): Promise<ArtifactCache> => {
      const artifacts = resources.use(
        new ArtifactCache({
          folder: join(folder.path, "artifacts"),
          hosting: {
            getIndex: async ({ digest }) => made.find((each) => each.digest === digest)?.text,
            listArtifactFiles: async () =>
              [...put].map(([sha256, blobId]) => ({ sha256, sizeBytes: 0, blobId })),
          },
          blobs: {
            async *read(...asked) {
              for await (const chunk of blobs.read(...asked)) {
                read += chunk.length;
                yield chunk;
              }
            },
          },
          log: pino({ level: "silent" }),
        }),
      );
      await artifacts.start();
      return artifacts;
    };
    const artifacts = await openAgain();
    const [first, second] = made.map(({ digest }) => digest) as [string, string];
    const at = (digest: string, path: string) => join(artifacts.folder, digest, path);
    return { artifacts, openAgain, first, second, weights, at, readBytes: () => read };
  }

  it("of one organization have the large files once that both have", async () => {
    const { artifacts, first, second, weights, at, readBytes } = await revisions();
    await artifacts.hold("a", first);
    const before = readBytes();
    const held = await artifacts.hold("a", second);
    expect(readBytes() - before).toBe("two".length + 1_000);
    for (const [path, isShared] of [
      ["weights.bin", true],
      ["middle.bin", true],
      ["small.bin", false],
    ] as const) {
      expect(statSync(at(first, path)).ino === statSync(at(second, path)).ino).toBe(isShared);
    }
    expect(readFileSync(at(second, "weights.bin")).equals(weights)).toBe(true);
    expect(await held.readCode()).toBe("two");
    held.release();
    await artifacts.sweep();
    expect(readFileSync(at(first, "weights.bin")).equals(weights)).toBe(true);
    await artifacts.hold("b", second);
    expect(statSync(at(first, "weights.bin")).nlink).toBe(1);
  });

  it("that have links to a file which is found damaged are verified again", async () => {
    const { artifacts, openAgain, first, second, weights, at } = await revisions();
    await artifacts.hold("a", first);
    await artifacts.hold("a", second);
    await artifacts[Symbol.asyncDispose]();
    const later = await openAgain();
    const [one, two] = [await later.hold("a", first), await later.hold("a", second)];
    expect(await two.readCode()).toBe("two");
    writeFileSync(at(first, "weights.bin"), "damaged");
    await expect(one.readCode()).rejects.toThrow("were damaged");
    await expect(two.readCode()).rejects.toThrow("were damaged");
    expect(await two.readCode()).toBe("two");
    expect(readFileSync(at(second, "weights.bin")).equals(weights)).toBe(true);
  });

  it("link no file that is damaged", async () => {
    const { artifacts, first, second, weights, at } = await revisions();
    await artifacts.hold("a", first);
    writeFileSync(at(first, "weights.bin"), Buffer.concat([weights, Buffer.from("x")]));
    await artifacts.hold("a", second);
    expect(readFileSync(at(second, "weights.bin")).equals(weights)).toBe(true);
    expect(statSync(at(second, "middle.bin")).nlink).toBe(2);
  });

  it("that are damaged in the store leave nothing", async () => {
    const [file] = stored.toSorted((a, b) => b.sizeBytes - a.sizeBytes);
    const blob = join(folder.path, "blobs", file?.blobId ?? "");
    const content = readFileSync(blob);
    content.writeUInt8((content[0] ?? 0) ^ 1, 0);
    writeFileSync(blob, content);
    const artifacts = await open();
    await expect(artifacts.hold("a", built.digest)).rejects.toThrow("changed or damaged");
    expect(await unpacked(artifacts)).toEqual([]);
  });

  it("lie apart for each of several nodes that share a data folder", async () => {
    const one = await open();
    const other = await open();
    expect(one.folder).not.toBe(other.folder);
    expect(dirname(one.folder)).toBe(dirname(other.folder));
  });
});
