import { readFileSync, writeFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { BuiltArtifact } from "../../src/artifacts/build-options.ts";
import { writeIndex } from "../../src/artifacts/index-file.ts";
import { openFile } from "../../src/artifacts/pack.ts";
import { ArtifactCache } from "../../src/hosting/artifact-cache.ts";
import { FolderBlobStore } from "../../src/storage/blobs/folder.ts";
import { createIdSource } from "../../src/tasks/id.ts";
import { artifact } from "../e2e/hosting/world.ts";
import { Folder } from "../e2e/start/platform.ts";

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
