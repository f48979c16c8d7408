/** The models on a machine: brought once, verified, mended, and removed when nothing has them. */
import { createHash, randomBytes } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { IndexedFile } from "../../../src/artifacts/index-file.ts";
import { createModelIndex } from "../../../src/artifacts/model-index.ts";
import { MAX_PART_BYTES, PARTS_FOLDER, partPath } from "../../../src/artifacts/parts.ts";
import { ModelStore } from "../../../src/hosting/models/store.ts";

const LOG = pino({ level: "silent" });
const ORGANIZATION = "acme-id";

let folder: string;
let opened: ModelStore[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tessera-models-"));
  opened = [];
});
afterEach(async () => {
  await Promise.all(opened.map((store) => store[Symbol.asyncDispose]()));
  rmSync(folder, { recursive: true, force: true });
});

function fileOf(path: string, content: Buffer): IndexedFile {
  const sha256 = createHash("sha256").update(content).digest("hex");
  return { path, size: content.length, sha256, executable: false };
}

/** A blob store in memory that has models, and counts what is read of it. */
class Platform {
  readonly #texts = new Map<string, string>();
  readonly #blobs = new Map<string, Buffer>();
  read = 0;
  /** Called before files are listed. */
  onList: () => void = () => {};
  /** Called before a chunk is given. */
  onChunk: () => void | Promise<void> = () => {};

  /** Adds a model; its digest. */
  add(files: { readonly [path: string]: Buffer }): string {
    const indexed = Object.entries(files).flatMap(([path, content]) => {
      const parts = Math.ceil(content.length / MAX_PART_BYTES);
      const pieces =
        parts <= 1
          ? [[path, content] as const]
          : Array.from({ length: parts }, (_, number) => {
              const start = number * MAX_PART_BYTES;
              const piece = content.subarray(start, start + MAX_PART_BYTES);
              return [`${PARTS_FOLDER}${partPath(path, number)}`, piece] as const;
            });
      return pieces.map(([place, piece]) => {
        const file = fileOf(place, piece);
        this.#blobs.set(file.sha256, piece);
        return file;
      });
    });
    const { text, digest } = createModelIndex(indexed);
    this.#texts.set(digest, text);
    return digest;
  }

  damage(content: Buffer): void {
    const { sha256 } = fileOf("", content);
    this.#blobs.set(sha256, Buffer.alloc(content.length));
  }

  async open(maxBytes = 1024 ** 3, at = folder): Promise<ModelStore> {
    const store = new ModelStore({
      folder: at,
      maxBytes,
      log: LOG,
      hosting: {
        getIndex: async ({ digest }) => this.#texts.get(digest),
        listArtifactFiles: async ({ digest }) => {
          this.onList();
          const { files } = JSON.parse(this.#texts.get(digest) ?? "") as { files: IndexedFile[] };
          return files.map(({ sha256, size }) => ({ sha256, sizeBytes: size, blobId: sha256 }));
        },
      },
      blobs: { read: (blobId) => this.#chunks(blobId) },
    });
    opened.push(store);
    await store.start();
    return store;
  }

  async *#chunks(sha256: string): AsyncGenerator<Uint8Array> {
    const content = this.#blobs.get(sha256) ?? Buffer.alloc(0);
    for (let at = 0; at < content.length; at += 1024 ** 2) {
      await this.onChunk();
      const chunk = content.subarray(at, at + 1024 ** 2);
      this.read += chunk.length;
      yield chunk;
    }
  }
}

const key = (digest: string) => ({ organizationId: ORGANIZATION, digest });

it("a model that several wait for is brought once, and stays for the next process", async () => {
  const platform = new Platform();
  const weights = randomBytes(3_000_000);
  const digest = platform.add({ "config.json": Buffer.from("{}"), "sub/weights.bin": weights });
  const store = await platform.open();
  const held = await Promise.all([store.hold(key(digest)), store.hold(key(digest))]);
  const [{ path }] = held;
  expect(readFileSync(join(path, "sub/weights.bin")).equals(weights)).toBe(true);
  expect(platform.read).toBe(weights.length + 2);
  await store[Symbol.asyncDispose]();
  const next = await platform.open();
  expect((await next.hold(key(digest))).path).toBe(path);
  expect(platform.read).toBe(weights.length + 2);
});

it("what a process has left goes on with the parts that are missing", async () => {
  const platform = new Platform();
  const weights = randomBytes(3 * MAX_PART_BYTES + 5);
  const digest = platform.add({ "weights.bin": weights });
  const store = await platform.open();
  const [enough, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  platform.onChunk = async () => {
    // Of the three that are read side by side, one is whole.
    if (platform.read >= 3 * MAX_PART_BYTES - 2 * 1024 ** 2) {
      enough.resolve();
      await gate.promise;
    }
  };
  const holding = store.hold(key(digest));
  await enough.promise;
  // What the disk has when the process ends here.
  const left = join(folder, "left");
  mkdirSync(left);
  cpSync(join(folder, `${digest}.partial`), join(left, `${digest}.partial`), { recursive: true });
  gate.resolve();
  await holding;
  platform.onChunk = () => {};
  platform.read = 0;
  const other = await platform.open(1024 ** 3, left);
  const { path } = await other.hold(key(digest));
  expect(path).toBe(join(left, digest));
  expect(readFileSync(join(path, "weights.bin")).equals(weights)).toBe(true);
  expect(platform.read).toBeLessThanOrEqual(2 * MAX_PART_BYTES + 5);
}, 30_000);

it("a model that is damaged on disk is mended, and one that is damaged in the store is refused", async () => {
  const platform = new Platform();
  const [one, two] = [randomBytes(100_000), randomBytes(200_000)];
  const digest = platform.add({ one, two });
  const store = await platform.open();
  const { path } = await store.hold(key(digest));
  await store[Symbol.asyncDispose]();
  writeFileSync(join(path, "two"), Buffer.alloc(200_000));
  platform.read = 0;
  const next = await platform.open();
  await next.hold(key(digest));
  expect(readFileSync(join(path, "two")).equals(two)).toBe(true);
  expect(platform.read).toBe(200_000);

  const other = platform.add({ three: randomBytes(7_000), one });
  platform.damage(one);
  await expect(next.hold(key(other))).rejects.toThrow(/one/);
  expect(readdirSync(folder)).not.toContain(other);
});

it("above the quota, what was not used for longest goes, and nothing that is held", async () => {
  const platform = new Platform();
  const digests = Array.from({ length: 3 }, (_, at) =>
    platform.add({ weights: Buffer.alloc(1_000_000, at + 1) }),
  );
  const [first = "", second = "", third = ""] = digests;
  const store = await platform.open(2_500_000);
  const held = await store.hold(key(first));
  const unused = await store.hold(key(second));
  unused.release();
  unused.release();
  const longAgo = new Date(0);
  utimesSync(held.path, longAgo, longAgo);
  await store.hold(key(third));
  expect(existsSync(join(folder, second))).toBe(false);
  expect(statSync(join(folder, first, "weights")).size).toBe(1_000_000);
  await expect(store.hold(key(second))).rejects.toThrow(/--max-models/);
});

it("whoever waits no longer leaves the others what they wait for", async () => {
  const platform = new Platform();
  const digest = platform.add({ weights: randomBytes(2_000_000) });
  const store = await platform.open();
  const gate = Promise.withResolvers<void>();
  platform.onChunk = () => gate.promise;
  const leaving = new AbortController();
  const left = store.hold(key(digest), { signal: leaving.signal });
  const kept = store.hold(key(digest));
  leaving.abort(new Error("something else is wanted"));
  await expect(left).rejects.toThrow("something else is wanted");
  gate.resolve();
  expect(existsSync(join((await kept).path, "weights"))).toBe(true);
});

it("a model that was deleted meanwhile says so", async () => {
  const store = await new Platform().open();
  const digest = "a".repeat(64);
  await expect(store.hold(key(digest))).rejects.toThrow(`there is no model ${digest} any more`);
});

it("a model that somebody takes while room is made is there, or brought again", async () => {
  const platform = new Platform();
  const [first = "", second = "", third = ""] = [1, 2, 3].map((byte) =>
    platform.add({ weights: Buffer.alloc(1_000_000, byte) }),
  );
  const store = await platform.open(2_500_000);
  for (let round = 0; round < 20; round += 1) {
    for (const digest of [first, second]) {
      (await store.hold(key(digest))).release();
    }
    const [taken, brought] = await Promise.allSettled([
      store.hold(key(third)),
      store.hold(key(first)),
    ]);
    for (const each of [taken, brought]) {
      if (each.status === "fulfilled") {
        expect(existsSync(join(each.value.path, "weights"))).toBe(true);
        each.value.release();
      }
    }
    expect(brought.status).toBe("fulfilled");
  }
});

it("a disk that is full at 99 % says so, and the model is brought when there is room", async () => {
  const platform = new Platform();
  const digest = platform.add({ weights: Buffer.alloc(4_000_000, 7) });
  const store = await platform.open();
  let chunks = 0;
  platform.onChunk = () => {
    chunks += 1;
    if (chunks === 4) {
      throw Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
    }
  };
  await expect(store.hold(key(digest))).rejects.toThrow(/the disk is full: model \w+ takes 4 MiB/);
  expect(readdirSync(folder).filter((name) => name.startsWith(digest))).toEqual([]);
  const { path } = await store.hold(key(digest));
  expect(statSync(join(path, "weights")).size).toBe(4_000_000);
});

it("what could not be brought takes no room", async () => {
  const platform = new Platform();
  const digest = platform.add({ weights: Buffer.alloc(2_000_000, 7) });
  const store = await platform.open(2_500_000);
  platform.onList = () => {
    throw new Error("the database is away");
  };
  for (let round = 0; round < 3; round += 1) {
    await expect(store.hold(key(digest))).rejects.toThrow("the database is away");
  }
  platform.onList = () => {};
  const { path } = await store.hold(key(digest));
  expect(existsSync(join(path, "weights"))).toBe(true);
});
