/**
 * The file store of calls and tasks. Small files stay in memory, and later in the row
 * of their task. Large files become blobs, which are registered before their first
 * byte is written, so that no crash leaves an unknown blob behind.
 *
 * A node has two keepers. The blobs of tasks can be read by every node and live as
 * long as a task refers to them. The blobs of calls are in a folder of this node and
 * are removed with the call.
 */
import { createHash } from "node:crypto";
import { toProblem } from "../../errors.ts";
import type {
  BlobReference,
  FileFacts,
  FileValue,
  Payload,
  StoredFile,
} from "../../protocol/messages.ts";
import { MAX_INLINE_FILE_BYTES } from "../../protocol/messages.ts";
import type { BlobStore, ByteRange } from "../blobs.ts";
import type { Storage } from "../storage.ts";
import { storedFiles } from "../stored.ts";

/**
 * How long a blob may belong to no task, from the first byte of its upload: far more than any
 * body may take.
 */
const UNATTACHED_BLOB_TTL_MS = 60 * 60_000;

interface KeeperOptions {
  readonly blobs: BlobStore;
  /** Undefined where the blobs do not outlive the node. */
  readonly registry?: Pick<Storage, "registerBlobs" | "releaseBlobs">;
  readonly newId: () => string;
  readonly now: () => number;
  /** The blob store failed: log the error. Callers get STORAGE_UNAVAILABLE without details. */
  onFailed?(err: unknown): void;
}

export class FileKeeper {
  readonly #options: KeeperOptions;

  constructor(options: KeeperOptions) {
    this.#options = options;
  }

  /**
   * Keeps a file, in memory when it has at most `inlineBytes`. Rejects with
   * STORAGE_UNAVAILABLE, or with the error of `chunks`; then nothing is kept.
   */
  async keep(
    facts: FileFacts,
    chunks: AsyncIterable<Uint8Array>,
    inlineBytes = MAX_INLINE_FILE_BYTES,
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
      // Not awaited: it ends with the next chunk, and the sender may be slow.
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
   * Releases the files of a payload that no task has. Never rejects: the sweeper
   * deletes later what cannot be deleted now.
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
    await registry?.registerBlobs({
      blobIds: [blobId],
      deleteAfterMs: now() + UNATTACHED_BLOB_TTL_MS,
    });
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
      // Registered blobs expire; a node's own folder is removed with the node.
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

  /** The digest in base64url. Call it once, after the last byte. */
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

/** Bytes in memory as a source of chunks. */
export async function* once(data: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  yield data;
}
