/**
 * The blob store on a folder, one file per blob. A file is written under a
 * temporary name, synced and then renamed, so blobs appear atomically.
 */
import { type FileHandle, mkdir, open, rename, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import {
  BlobMissing,
  type BlobStore,
  type ByteRange,
  blobsUnavailable,
  checkBlobId,
  Source,
  WHOLE,
} from "../blobs.ts";

/** Chunk in which a blob is read from its folder. */
const BLOB_READ_CHUNK_BYTES = 256 * 1024;

export class FolderBlobStore implements BlobStore {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = resolve(folder);
  }

  async start(): Promise<void> {
    try {
      await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    } catch (err) {
      const reason = err instanceof Error ? err.message : String(err);
      throw new Error(
        `cannot keep large files in ${this.#folder}: ${reason}; choose another folder with --blobs`,
        { cause: err },
      );
    }
  }

  async write(blobId: string, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    const path = this.#path(blobId);
    const source = new Source(chunks);
    try {
      await writeDurably(partOf(path), source);
      await rename(partOf(path), path);
      await syncFolder(this.#folder);
    } catch (err) {
      await rm(partOf(path), { force: true }).catch(() => {
        // The registry knows the blob and deletes it later.
      });
      throw source.errorFor(err);
    }
  }

  async *read(blobId: string, { start, end }: ByteRange = WHOLE): AsyncGenerator<Uint8Array> {
    const file = await openBlob(blobId, this.#path(blobId));
    try {
      let position = start;
      while (position < end) {
        const buffer = Buffer.allocUnsafe(Math.min(BLOB_READ_CHUNK_BYTES, end - position));
        const { bytesRead } = await readFrom(file, buffer, position);
        if (bytesRead === 0) {
          break;
        }
        position += bytesRead;
        yield buffer.subarray(0, bytesRead);
      }
      if (position < end && end !== WHOLE.end) {
        throw new BlobMissing(blobId);
      }
    } finally {
      await file.close();
    }
  }

  async delete(blobIds: readonly string[]): Promise<void> {
    try {
      for (const path of blobIds.map((blobId) => this.#path(blobId))) {
        await rm(path, { force: true });
        await rm(partOf(path), { force: true });
      }
    } catch (err) {
      throw blobsUnavailable(err);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  #path(blobId: string): string {
    return join(this.#folder, checkBlobId(blobId));
  }
}

function partOf(path: string): string {
  return `${path}.part`;
}

async function writeDurably(path: string, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    for await (const chunk of chunks) {
      await file.writeFile(chunk);
    }
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Syncs a folder: only that makes the name of a file durable. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

async function openBlob(blobId: string, path: string): Promise<FileHandle> {
  try {
    return await open(path, "r");
  } catch (err) {
    const gone = (err as NodeJS.ErrnoException).code === "ENOENT";
    throw gone ? new BlobMissing(blobId, { cause: err }) : blobsUnavailable(err);
  }
}

async function readFrom(file: FileHandle, buffer: Buffer, position: number) {
  try {
    return await file.read(buffer, 0, buffer.length, position);
  } catch (err) {
    throw blobsUnavailable(err);
  }
}
