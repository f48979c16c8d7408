/** The contract of the blob store, for any place: every promise of `src/storage/blobs.ts`. */
import { createHash, randomUUID } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BlobMissing, type BlobStore, WHOLE } from "../../../src/storage/blobs.ts";

/** A place for blobs of a test's own; disposing of it removes it. */
export interface TestPlace extends AsyncDisposable {
  readonly store: BlobStore;
  /** How many things lie there: blobs, parts of blobs, whatever. */
  count(): Promise<number>;
  /** Makes the store unusable until the returned function is called. */
  breakDown(): Promise<() => Promise<void>>;
}

const MEBIBYTE = 1024 * 1024;
const CHUNK = 256 * 1024;

/** Every byte value, in a period that no power of two divides. */
function bytes(length: number): Buffer {
  return Buffer.from(Uint8Array.from({ length }, (_, index) => (index % 257) & 0xff));
}

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

async function* chunksOf(data: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < data.length; start += size) {
    yield data.subarray(start, start + size);
  }
}

async function collect(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const chunk of chunks) {
    all.push(chunk);
  }
  return Buffer.concat(all);
}

export function blobsContract(name: string, createPlace: () => Promise<TestPlace>): void {
  describe(`a blob store: ${name}`, () => {
    let place: TestPlace;
    let store: BlobStore;
    beforeAll(async () => {
      place = await createPlace();
      store = place.store;
    });
    afterAll(() => place[Symbol.asyncDispose]());

    const write = async (data: Uint8Array, chunkBytes = 64 * 1024): Promise<string> => {
      const blobId = randomUUID();
      await store.write(blobId, chunksOf(data, chunkBytes));
      return blobId;
    };

    it.each([0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 5_000_000])(
      "keeps %d bytes as they are",
      async (length) => {
        const data = bytes(length);
        const blobId = await write(data);
        expect((await collect(store.read(blobId))).equals(data)).toBe(true);
        const range = { start: 0, end: length };
        expect((await collect(store.read(blobId, range))).equals(data)).toBe(true);
      },
    );

    it("keeps what comes in chunks of any size", async () => {
      const data = bytes(700_000);
      for (const chunkBytes of [1_000, 300_000, 700_000]) {
        expect((await collect(store.read(await write(data, chunkBytes)))).equals(data)).toBe(true);
      }
    });

    it("reads any part", async () => {
      const data = bytes(3 * CHUNK + 10);
      const blobId = await write(data);
      const ranges = [
        [0, 1],
        [0, CHUNK],
        [CHUNK - 1, CHUNK + 1],
        [CHUNK, 2 * CHUNK],
        [100, 3 * CHUNK + 10],
        [3 * CHUNK + 9, 3 * CHUNK + 10],
        [5, 5],
        [2 * CHUNK, WHOLE.end],
      ] as const;
      for (const [start, end] of ranges) {
        const read = await collect(store.read(blobId, { start, end }));
        expect(read.equals(data.subarray(start, end)), `${start} to ${end}`).toBe(true);
      }
    });

    it("says when a blob is not there, or not as long as it should be", async () => {
      const never = collect(store.read(randomUUID(), { start: 0, end: 10 }));
      await expect(never).rejects.toBeInstanceOf(BlobMissing);
      await expect(collect(store.read(randomUUID()))).rejects.toBeInstanceOf(BlobMissing);
      const blobId = await write(bytes(100));
      const beyond = collect(store.read(blobId, { start: 0, end: 101 }));
      await expect(beyond).rejects.toBeInstanceOf(BlobMissing);
    });

    it("deletes blobs, and minds none that are not there", async () => {
      const before = await place.count();
      const blobIds = [await write(bytes(10)), await write(bytes(300_000))];
      expect(await place.count()).toBeGreaterThan(before);
      await store.delete([...blobIds, randomUUID()]);
      await store.delete(blobIds);
      expect(await place.count()).toBe(before);
      await expect(collect(store.read(blobIds[0] ?? ""))).rejects.toBeInstanceOf(BlobMissing);
    });

    it.each([10, 20 * MEBIBYTE])(
      "keeps nothing of a source that fails after %d bytes, and throws what it threw",
      async (length) => {
        const before = await place.count();
        async function* broken() {
          yield* chunksOf(Buffer.alloc(length, 7), MEBIBYTE);
          throw new RangeError("the caller has gone");
        }
        const blobId = randomUUID();
        await expect(store.write(blobId, broken())).rejects.toThrow(
          new RangeError("the caller has gone"),
        );
        expect(await place.count()).toBe(before);
        await expect(collect(store.read(blobId))).rejects.toBeInstanceOf(BlobMissing);
      },
    );

    it("moves 96 MiB without holding them, as fast as they are taken", async () => {
      const block = bytes(MEBIBYTE);
      const count = 96;
      const sent = createHash("sha256");
      let peak = 0;
      let looks = 0;
      /** What is held; what is only garbage says nothing. */
      const look = () => {
        looks += 1;
        if (looks % 16 === 1) {
          // Another thread gives back what a collection finds, and has done so when the next begins.
          collectGarbage();
          collectGarbage();
          const { arrayBuffers, external } = process.memoryUsage();
          peak = Math.max(peak, arrayBuffers, external);
        }
      };
      async function* blocks() {
        for (let index = 0; index < count; index += 1) {
          const copy = Buffer.from(block);
          copy.writeUInt32LE(index);
          sent.update(copy);
          look();
          yield copy;
        }
      }
      look();
      const before = peak;
      const blobId = randomUUID();
      await store.write(blobId, blocks());
      const read = createHash("sha256");
      for await (const chunk of store.read(blobId)) {
        read.update(chunk);
        look();
        await nextTurn();
      }
      expect(read.digest("hex")).toBe(sent.digest("hex"));
      // The parts that are under way, here and in a server in the same process.
      expect(peak - before).toBeLessThan(64 * MEBIBYTE);
      await store.delete([blobId]);
    }, 240_000);

    it("lets a reader leave before the end", async () => {
      const blobId = await write(bytes(2_000_000));
      for await (const chunk of store.read(blobId)) {
        expect(chunk.length).toBeGreaterThan(0);
        break;
      }
      expect((await collect(store.read(blobId))).length).toBe(2_000_000);
    });

    it("takes no id that could lead elsewhere", async () => {
      await expect(store.write("../../etc/passwd", chunksOf(bytes(1), 1))).rejects.toThrow();
      await expect(collect(store.read("../../etc/passwd"))).rejects.toThrow();
      await expect(store.delete([""])).rejects.toThrow();
    });

    it("is STORAGE_UNAVAILABLE while it cannot be used, and works again after that", async () => {
      const blobId = await write(bytes(1_000));
      const mend = await place.breakDown();
      const unavailable = { reason: "STORAGE_UNAVAILABLE" };
      try {
        await expect(write(bytes(1_000))).rejects.toMatchObject(unavailable);
        await expect(collect(store.read(blobId))).rejects.toMatchObject(unavailable);
      } finally {
        await mend();
      }
      expect((await collect(store.read(blobId))).length).toBe(1_000);
      await write(bytes(1_000));
    });
  });
}
