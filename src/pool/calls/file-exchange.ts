/**
 * File exchange: passes large files between the node and a worker on disk, in a
 * folder per call inside the worker's scratch folder. The node writes the
 * arguments before the call begins, the worker writes its result, and the node
 * removes the folder when the call has ended. Files are streamed in chunks.
 *
 * The worker is not trusted: it only announces that a result exists. The node
 * knows the path, follows no links, reads only regular files, and reads no more
 * bytes than the file had when it was opened.
 */
import { constants } from "node:fs";
import { type FileHandle, mkdir, open, readlink, realpath, rm } from "node:fs/promises";
import { join } from "node:path";
import { problem } from "../../errors.ts";
import {
  argumentName,
  callFolder,
  type FileOnDisk,
  type FileValue,
  headsOf,
  jsonOf,
  type Payload,
  RESULT_NAME,
  type SentPayload,
  type StoredFile,
} from "../../protocol/messages.ts";
import { blobsUnavailable } from "../../storage/blobs.ts";
import type { FileKeeper } from "../../storage/files/keeper.ts";

/** Chunk in which a result is read from disk. */
const RESULT_READ_CHUNK_BYTES = 256 * 1024;

/** UTF-8 bytes per UTF-16 code unit. */
const MAX_BYTES_PER_CHARACTER = 3;

export interface FileExchangeOptions {
  readonly scratchFolder: string;
  /** Limit of a result that is a file, in bytes. */
  readonly maxFileBytes: number;
  /** Limit of any other result, in UTF-16 code units. */
  readonly maxResultBytes: number;
}

export class FileExchange {
  readonly #options: FileExchangeOptions;

  constructor(options: FileExchangeOptions) {
    this.#options = options;
  }

  /**
   * Writes the large files of arguments where the worker reads them. Rejects
   * with STORAGE_UNAVAILABLE, or with a `BlobMissing`.
   */
  async stage(
    callId: number,
    payload: Payload,
    keeper: Pick<FileKeeper, "keep" | "read">,
  ): Promise<SentPayload> {
    const folder = this.#folderOf(callId);
    await mkdir(folder, { mode: 0o700 }).catch(cannotWrite);
    const files: (FileValue | FileOnDisk)[] = [];
    for (const [index, file] of payload.files.entries()) {
      if ("data" in file) {
        files.push(file);
      } else {
        const { blob, ...facts } = file;
        await writeFile(join(folder, argumentName(index)), keeper.read(blob));
        files.push({ ...facts, size: blob.size });
      }
    }
    return { json: jsonOf(payload), files, ...headsOf(payload) };
  }

  /**
   * Reads a result that the worker has put into the folder of the call. Rejects
   * with STORAGE_UNAVAILABLE, RESULT_TOO_LARGE, or with OUTPUT_INVALID when the
   * file is not a regular file at the expected path.
   */
  async collect(
    callId: number,
    sent: SentPayload,
    keeper: Pick<FileKeeper, "keep" | "read">,
  ): Promise<Payload> {
    const { maxFileBytes, maxResultBytes } = this.#options;
    if (sent.text) {
      const maxBytes = maxResultBytes * MAX_BYTES_PER_CHARACTER;
      const text = await this.#take(callId, sent.text, { keeper, maxBytes });
      const heads = headsOf(sent);
      return "blob" in text
        ? { json: "", files: [], text, ...heads }
        : { json: jsonOfText(text), files: [], ...heads };
    }
    const [file] = sent.files;
    if (file === undefined || sent.files.length > 1) {
      throw problem("OUTPUT_INVALID", "the result is not one file");
    }
    return {
      json: sent.json,
      files: [
        "data" in file ? file : await this.#take(callId, file, { keeper, maxBytes: maxFileBytes }),
      ],
      ...headsOf(sent),
    };
  }

  /** Removes the folder of a call. */
  clear(callId: number): void {
    rm(this.#folderOf(callId), { recursive: true, force: true }).catch(() => {
      // The function still writes there; the folder is removed with the worker's.
    });
  }

  #folderOf(callId: number): string {
    return join(this.#options.scratchFolder, callFolder(callId));
  }

  async #take(
    callId: number,
    { contentType, filename }: FileOnDisk,
    {
      keeper,
      maxBytes,
    }: { readonly keeper: Pick<FileKeeper, "keep" | "read">; readonly maxBytes: number },
  ): Promise<FileValue | StoredFile> {
    await using file = await this.#openResult(callId);
    const { size } = await file.stat();
    if (size > maxBytes) {
      const message = `the result has ${size} bytes, which is more than the limit of ${maxBytes}: return less`;
      throw problem("RESULT_TOO_LARGE", message);
    }
    const facts = { contentType, ...(filename !== undefined && { filename }) };
    return await keeper.keep(facts, readFile(file, size));
  }

  async #openResult(callId: number): Promise<FileHandle> {
    const path = join(this.#folderOf(callId), RESULT_NAME);
    let file: FileHandle | undefined;
    try {
      // Non-blocking, because opening a named pipe would wait for a writer.
      const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
      file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
      const expected = join(
        await realpath(this.#options.scratchFolder),
        callFolder(callId),
        RESULT_NAME,
      );
      if ((await file.stat()).isFile() && (await placeOf(file, path)) === expected) {
        return file;
      }
    } catch (cause) {
      await file?.close();
      throw problem("OUTPUT_INVALID", "the result that the worker named could not be read", {
        cause,
      });
    }
    await file.close();
    throw problem("OUTPUT_INVALID", "the result that the worker named is no file of its own");
  }
}

/** The real path of an open file: from /proc or, without it, from resolving its path. */
async function placeOf(file: FileHandle, path: string): Promise<string> {
  try {
    return await readlink(`/proc/self/fd/${file.fd}`);
  } catch {
    // Not every system has /proc.
    return realpath(path);
  }
}

async function* readFile(file: FileHandle, size: number): AsyncGenerator<Uint8Array> {
  for (let position = 0; position < size; ) {
    const buffer = Buffer.allocUnsafe(Math.min(RESULT_READ_CHUNK_BYTES, size - position));
    const { bytesRead } = await file.read(buffer, 0, buffer.length, position);
    if (bytesRead === 0) {
      throw problem("OUTPUT_INVALID", "the result became shorter while it was read");
    }
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

async function writeFile(path: string, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  await using file = await open(path, "wx", 0o600).catch(cannotWrite);
  for await (const chunk of chunks) {
    await file.writeFile(chunk).catch(cannotWrite);
  }
}

function cannotWrite(err: unknown): never {
  throw blobsUnavailable(err);
}

/** The JSON of a text that is small enough for memory. */
function jsonOfText({ contentType, data }: FileValue): string {
  const text = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString();
  return contentType === "application/json" ? text : JSON.stringify(text);
}
