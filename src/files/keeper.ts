/**
 * Keeps files: few bytes in memory, and later in the row of their task; more
 * of them as a blob, which is noted in the registry before its first byte is
 * written, so that whatever happens in between somebody knows of it.
 *
 * A node has two: one for tasks, whose blobs every node can read and which
 * live as long as a task names them, and one for calls, whose blobs stand in a
 * folder of this node and are removed with the call.
 */
import { createHash } from "node:crypto";
import { toProblem } from "../errors.ts";
import type {
  BlobReference,
  FileFacts,
  FileValue,
  Payload,
  StoredFile,
} from "../protocol/messages.ts";
import { INLINE_FILE_BYTES } from "../protocol/messages.ts";
import type { BlobStore, ByteRange } from "../storage/blobs.ts";
import type { Storage } from "../storage/storage.ts";
import { storedFiles } from "../storage/stored.ts";

/** From the first byte of an upload until a task has it: far more than any body may take. */
const UNATTACHED_MS = 60 * 60_000;

export interface KeeperOptions {
  readonly blobs: BlobStore;
  /** Absent where the blobs do not outlive the node. */
  readonly registry?: Pick<Storage, "registerBlobs" | "releaseBlobs">;
  readonly newId: () => string;
  readonly now: () => number;
  /** The blob store failed: callers hear that it is unavailable, and why is for the log. */
  onFailed?(err: unknown): void;
}

export class FileKeeper {
  readonly #options: KeeperOptions;

  constructor(options: KeeperOptions) {
    this.#options = options;
  }

  /**
   * Keeps a file, in memory when it has at most `inlineBytes`. Rejects with
   * STORAGE_UNAVAILABLE, or with what `chunks` threw; then nothing is kept.
   */
  async keep(
    facts: FileFacts,
    chunks: AsyncIterable<Uint8Array>,
    inlineBytes = INLINE_FILE_BYTES,
  ): Promise<FileValue | StoredFile> {
    const iterator = chunks[Symbol.asyncIterator]();
    const head: Uint8Array[] = [];
    let size = 0;
    while (size <= inlineBytes) {
      const { done, value } = await iterator.next();
      if (done) {
        return { ...facts, data: Buffer.concat(head) };
      }
      head.push(value);
      size += value.length;
    }
    try {
      return { ...facts, blob: await this.#store(joined(head, iterator)) };
    } catch (err) {
      // Not waited for: it ends with the next chunk, and its caller may be slow.
      void iterator.return?.().catch(() => {});
      throw err;
    }
  }

  /** The bytes of a file, or of a part of it. */
  async *read(
    { blobId, size }: BlobReference,
    range: ByteRange = { start: 0, end: size },
  ): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      yield* this.#options.blobs.read(blobId, range);
    } catch (err) {
      this.#options.onFailed?.(err);
      throw err;
    }
  }

  /**
   * Gives up the files of a payload that no task has. Never rejects: what
   * cannot be deleted now, the sweeper finds.
   */
  async release(payload: Payload): Promise<void> {
    const blobIds = storedFiles(payload).map(({ blob }) => blob.blobId);
    if (blobIds.length > 0) {
      await this.#release(blobIds);
    }
  }

  async #store(chunks: AsyncIterable<Uint8Array>): Promise<BlobReference> {
    const { blobs, registry, newId, now } = this.#options;
    const blobId = newId();
    const measured = new Measured(chunks);
    await registry?.registerBlobs({ blobIds: [blobId], deleteAfterMs: now() + UNATTACHED_MS });
    try {
      await blobs.write(blobId, measured);
    } catch (err) {
      if (toProblem(err).reason === "STORAGE_UNAVAILABLE") {
        this.#options.onFailed?.(err);
      }
      await this.#release([blobId]);
      throw err;
    }
    return { blobId, size: measured.size, sha256: measured.sha256() };
  }

  async #release(blobIds: readonly string[]): Promise<void> {
    const { blobs, registry, now } = this.#options;
    try {
      await (registry ? registry.releaseBlobs({ blobIds, nowMs: now() }) : blobs.delete(blobIds));
    } catch {
      // The registry has its time for them; a node's own folder is removed with the node.
    }
  }
}

/** Counts and digests bytes as they pass. */
class Measured implements AsyncIterable<Uint8Array> {
  readonly #chunks: AsyncIterable<Uint8Array>;
  readonly #hash = createHash("sha256");
  size = 0;

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    for await (const chunk of this.#chunks) {
      this.size += chunk.length;
      this.#hash.update(chunk);
      yield chunk;
    }
  }

  /** In base64url; once, when all have passed. */
  sha256(): string {
    return this.#hash.digest("base64url");
  }
}

async function* joined(
  head: Uint8Array[],
  rest: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  for (let chunk = head.shift(); chunk; chunk = head.shift()) {
    yield chunk;
  }
  for (let next = await rest.next(); !next.done; next = await rest.next()) {
    yield next.value;
  }
}

/** Bytes that are there already, as a source. */
export async function* once(data: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  yield data;
}
