/**
 * The writer of a backup file. It writes under another name, entry by entry, and
 * the file appears under its own when all of it is on the disk. One chunk is in
 * memory at a time.
 */
import { createHash, randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { Header } from "tar";
import {
  ABOUT_NAME,
  type BackupAbout,
  type BackupEntryName,
  END_NAME,
  formatAbout,
  formatEnd,
  indexLine,
  nameOfEntry,
  paddingOf,
  TAR_BLOCK_BYTES,
} from "./format.ts";

/** Thrown by `add` when the content is not what its name says; the entry is left out. */
export class ContentDiffers extends Error {
  override readonly name = "ContentDiffers";
}

export class BackupWriter implements AsyncDisposable {
  readonly #path: string;
  readonly #partPath: string;
  readonly #file: FileHandle;
  readonly #index = createHash("sha256");
  #entries = 0;
  #position = 0;

  private constructor(path: string, partPath: string, file: FileHandle) {
    this.#path = path;
    this.#partPath = partPath;
    this.#file = file;
  }

  /** Begins a file, which its owner alone may read. Rejects when there is one already. */
  static async create(path: string): Promise<BackupWriter> {
    const partPath = `${path}.${randomUUID()}.partial`;
    return new BackupWriter(path, partPath, await open(partPath, "wx", 0o600));
  }

  /** How many bytes were written. */
  get sizeBytes(): number {
    return this.#position;
  }

  async addAbout(about: BackupAbout): Promise<void> {
    const bytes = formatAbout(about);
    await this.#writeSmall(ABOUT_NAME, bytes);
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    this.#note(ABOUT_NAME, bytes.length, sha256);
  }

  /**
   * Adds an entry. When `content` fails, or has another size or digest
   * (`ContentDiffers`), rejects, and the file is as it was before.
   */
  async add(
    entry: BackupEntryName,
    sizeBytes: number,
    content: AsyncIterable<Uint8Array>,
  ): Promise<void> {
    const path = nameOfEntry(entry);
    const begin = this.#position;
    try {
      await this.#write(headerOf(path, sizeBytes));
      await this.#writeContent(entry.sha256, sizeBytes, content);
      await this.#pad(sizeBytes);
    } catch (err) {
      this.#position = begin;
      await this.#file.truncate(begin);
      throw err;
    }
    this.#note(path, sizeBytes, entry.sha256);
  }

  /** Writes the end, and puts the file in its place; `macOf` makes the MAC of the index's digest. */
  async finish(macOf: (index: string) => string): Promise<void> {
    const index = this.#index.digest("hex");
    const end = { entries: this.#entries, index, mac: macOf(index) };
    await this.#writeSmall(END_NAME, formatEnd(end));
    await this.#write(Buffer.alloc(2 * TAR_BLOCK_BYTES));
    await this.#file.sync();
    refuseExisting(this.#path);
    await rename(this.#partPath, this.#path);
    await syncFolder(dirname(this.#path));
  }

  /** Closes the file; removes what is unfinished. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close();
    await rm(this.#partPath, { force: true });
  }

  #note(path: string, sizeBytes: number, sha256: string): void {
    this.#index.update(indexLine(path, sizeBytes, sha256));
    this.#entries += 1;
  }

  async #writeSmall(path: string, bytes: Buffer): Promise<void> {
    await this.#write(headerOf(path, bytes.length));
    await this.#write(bytes);
    await this.#pad(bytes.length);
  }

  async #writeContent(
    sha256: string,
    sizeBytes: number,
    content: AsyncIterable<Uint8Array>,
  ): Promise<void> {
    const hash = createHash("sha256");
    let left = sizeBytes;
    for await (const chunk of content) {
      left -= chunk.length;
      if (left < 0) {
        break;
      }
      hash.update(chunk);
      await this.#write(chunk);
    }
    if (left !== 0 || hash.digest("hex") !== sha256) {
      throw new ContentDiffers("the content is not what was stored");
    }
  }

  async #pad(sizeBytes: number): Promise<void> {
    await this.#write(Buffer.alloc(paddingOf(sizeBytes)));
  }

  async #write(bytes: Uint8Array): Promise<void> {
    for (let written = 0; written < bytes.length; ) {
      const left = bytes.length - written;
      const { bytesWritten } = await this.#file.write(bytes, written, left, this.#position);
      written += bytesWritten;
      this.#position += bytesWritten;
    }
  }
}

/** Throws a message that says what to do when the file is there. */
export function refuseExisting(path: string): void {
  if (existsSync(path)) {
    throw new Error(`${path} exists, and is not overwritten: name another file, or remove it`);
  }
}

/** Syncs a folder: only that makes the name of a file durable. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(resolve(path), "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

function headerOf(path: string, size: number): Buffer {
  const header = new Header({
    path,
    size,
    mode: 0o600,
    type: "File",
    uid: 0,
    gid: 0,
    mtime: new Date(0),
  });
  // Every name fits into the two fields of ustar, and sizes from 8 GiB on stand in base 256.
  header.encode();
  return header.block ?? Buffer.alloc(TAR_BLOCK_BYTES);
}
