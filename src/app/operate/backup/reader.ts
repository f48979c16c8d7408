/**
 * The reader of a backup file, which may be of anybody. It takes entries in the one
 * order that the format has, and only regular files with names of the format; no
 * name is ever used as a path. It reads each content once, in chunks, checks its
 * digest, and at the end the digest of the index.
 */
import { createHash, type Hash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { Header } from "tar";
import {
  ABOUT_NAME,
  type BackupAbout,
  type BackupEnd,
  type BackupEntryName,
  BackupError,
  damaged,
  END_NAME,
  indexLine,
  MAX_ABOUT_BYTES,
  MAX_END_BYTES,
  paddingOf,
  parseAbout,
  parseEnd,
  parseEntryName,
  TAR_BLOCK_BYTES,
} from "./format.ts";

/** Bytes that are read of a backup at a time. */
const BACKUP_READ_CHUNK_BYTES = 256 * 1024;

/** One entry with its content, which is checked while it is read. */
export type BackupEntry = BackupEntryName & {
  readonly sizeBytes: number;
  readonly content: AsyncIterable<Uint8Array>;
};

export class BackupReader implements AsyncDisposable {
  readonly #path: string;
  readonly #file: FileHandle;
  /** Of the whole file, in bytes. */
  readonly sizeBytes: number;
  readonly #index: Hash = createHash("sha256");
  #entries = 0;
  #position = 0;
  #about: BackupAbout | undefined;
  #end: BackupEnd | undefined;

  private constructor(path: string, file: FileHandle, sizeBytes: number) {
    this.#path = path;
    this.#file = file;
    this.sizeBytes = sizeBytes;
  }

  /** Opens a backup and reads what it is of. Rejects with a message that says what is wrong. */
  static async open(path: string): Promise<BackupReader> {
    const file = await openFile(path);
    try {
      const { size } = await file.stat();
      const reader = new BackupReader(path, file, size);
      await reader.#readAbout();
      return reader;
    } catch (err) {
      await file.close();
      throw err;
    }
  }

  get about(): BackupAbout {
    return known(this.#about);
  }

  /** Known when all entries are read. */
  get end(): BackupEnd {
    return known(this.#end);
  }

  /** How many bytes of the file are read. */
  get readBytes(): number {
    return this.#position;
  }

  /**
   * Yields the database, where there is one, and then the blobs. The caller reads a
   * content to its end, or not at all: then it is read here, so that every digest is
   * checked. Throws a `BackupError`.
   */
  async *entries(): AsyncGenerator<BackupEntry, void, undefined> {
    for (;;) {
      const { path, size } = await this.#readHeader();
      if (path === END_NAME) {
        await this.#readEnd(size);
        return;
      }
      const name = parseEntryName(path);
      if (name === undefined || !this.#mayFollow(name)) {
        throw this.#foreign();
      }
      const content = this.#read(path, size, name.sha256);
      yield { ...name, sizeBytes: size, content };
      for await (const _ of content) {
        // The caller left it.
      }
      this.#note(path, size, name.sha256);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close();
  }

  /** A SQLite backup has its database first, and once; one of Postgres has none. */
  #mayFollow({ kind }: BackupEntryName): boolean {
    const isFirst = this.#entries === 1;
    return this.about.database === "sqlite" ? (kind === "database") === isFirst : kind === "blob";
  }

  async #readAbout(): Promise<void> {
    const { path, size } = await this.#readHeader();
    if (path !== ABOUT_NAME) {
      throw this.#foreign();
    }
    const bytes = await this.#readSmall(path, size, MAX_ABOUT_BYTES);
    this.#about = parseAbout(bytes);
    this.#note(path, size, createHash("sha256").update(bytes).digest("hex"));
  }

  async #readEnd(size: number): Promise<void> {
    const end = parseEnd(await this.#readSmall(END_NAME, size, MAX_END_BYTES));
    const isWhole = this.about.database === "postgres" || this.#entries > 1;
    if (end.entries !== this.#entries || end.index !== this.#index.digest("hex") || !isWhole) {
      throw new BackupError(
        `${this.#path} lacks entries, or has others than it was made with: use another backup`,
      );
    }
    const last = await this.#take(2 * TAR_BLOCK_BYTES);
    if (last.some((byte) => byte !== 0) || this.#position !== this.sizeBytes) {
      throw new BackupError(`${this.#path} goes on after its end: use another backup`);
    }
    this.#end = end;
  }

  #note(path: string, sizeBytes: number, sha256: string): void {
    this.#index.update(indexLine(path, sizeBytes, sha256));
    this.#entries += 1;
  }

  async #readHeader(): Promise<{ readonly path: string; readonly size: number }> {
    const header = decode(await this.#take(TAR_BLOCK_BYTES));
    const { path, size, type } = header ?? {};
    const isFile = type === "File" && path !== undefined && Number.isSafeInteger(size);
    if (!isFile || size === undefined) {
      throw this.#foreign();
    }
    this.#require(size + paddingOf(size));
    return { path, size };
  }

  async #readSmall(path: string, size: number, maxBytes: number): Promise<Buffer> {
    if (size > maxBytes) {
      throw damaged(path);
    }
    const bytes = await this.#take(size);
    await this.#take(paddingOf(size));
    return bytes;
  }

  async *#read(
    path: string,
    size: number,
    sha256: string,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    const hash = createHash("sha256");
    for (let left = size; left > 0; ) {
      const chunk = await this.#take(Math.min(left, BACKUP_READ_CHUNK_BYTES));
      left -= chunk.length;
      hash.update(chunk);
      if (left === 0 && hash.copy().digest("hex") !== sha256) {
        throw damaged(path);
      }
      yield chunk;
    }
    if (size === 0 && hash.digest("hex") !== sha256) {
      throw damaged(path);
    }
    await this.#take(paddingOf(size));
  }

  /** The next bytes, all of them. */
  async #take(length: number): Promise<Buffer> {
    this.#require(length);
    const bytes = Buffer.alloc(length);
    for (let taken = 0; taken < length; ) {
      const { bytesRead } = await this.#file.read(bytes, taken, length - taken, this.#position);
      if (bytesRead === 0) {
        throw this.#truncated();
      }
      taken += bytesRead;
      this.#position += bytesRead;
    }
    return bytes;
  }

  #require(length: number): void {
    if (this.#position + length > this.sizeBytes) {
      throw this.#position === 0 ? this.#foreign() : this.#truncated();
    }
  }

  #truncated(): BackupError {
    return new BackupError(
      `${this.#path} is truncated: it ends after ${this.sizeBytes} bytes, in the middle of the backup; copy it again, or use another`,
    );
  }

  #foreign(): BackupError {
    return this.#about === undefined
      ? new BackupError(`${this.#path} is not a backup that tessera admin backup made`)
      : new BackupError(
          `${this.#path} has an entry that no backup has: it is damaged or forged; use another backup`,
        );
  }
}

async function openFile(path: string): Promise<FileHandle> {
  try {
    return await open(path, "r");
  } catch (err) {
    const reason = err instanceof Error ? err.message : String(err);
    throw new BackupError(`the backup ${path} cannot be read: ${reason}`, { cause: err });
  }
}

function decode(block: Buffer): Header | undefined {
  try {
    const header = new Header(block);
    return header.cksumValid ? header : undefined;
  } catch {
    return undefined;
  }
}

function known<Value>(value: Value | undefined): Value {
  if (value === undefined) {
    throw new Error("this part of the backup has not been read yet");
  }
  return value;
}
