/** The files of one call in a worker: arguments that the node wrote to disk, and the result. */
import { createWriteStream, openAsBlob, rmSync } from "node:fs";
import { copyFile, link, mkdir, rename, writeFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";
import { placeOf, setPlace } from "../protocol/file-place.ts";
import {
  argumentName,
  callFolder,
  type FileFacts,
  type FileOnDisk,
  type FileValue,
  RESULT_NAME,
} from "../protocol/messages.ts";

/** What file systems take for one name. */
const MAX_NAME_BYTES = 255;

/** The folder of arguments with their names, in that of the call. */
const UPLOADS = "uploads";

export class CallFiles {
  readonly #scratchFolder: string;
  readonly #callId: number;
  #hasUploads = false;

  constructor(scratchFolder: string, callId: number) {
    this.#scratchFolder = scratchFolder;
    this.#callId = callId;
  }

  /** An argument as a `File`; `index` is its index among the files of the call. */
  async argument(file: FileValue | FileOnDisk, index: number): Promise<File> {
    const { contentType, filename = "" } = file;
    if ("size" in file) {
      const sent = join(this.#folder, argumentName(index));
      const argument = new File([await openAsBlob(sent)], filename, { type: contentType });
      setPlace(argument, { path: await this.#name(sent, index, filename), own: false });
      return argument;
    }
    const data = file.data as Uint8Array<ArrayBuffer>;
    const argument = new File([data], filename, { type: contentType });
    let written: Promise<string> | undefined;
    setPlace(argument, () => (written ??= this.#write(data, index, filename)));
    return argument;
  }

  /** Writes a result where the node expects it. */
  async result(facts: FileFacts, value: Blob | string | Uint8Array): Promise<FileOnDisk> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const path = join(this.#folder, RESULT_NAME);
    if (!(value instanceof Blob)) {
      await writeFile(path, value, { mode: 0o600 });
      return { ...facts, size: Buffer.byteLength(value) };
    }
    const place = placeOf(value);
    if (place?.own) {
      await rename(place.path, path);
    } else if (place) {
      await copyFile(place.path, path);
    } else {
      await pipeline(Readable.fromWeb(value.stream() as ReadableStream), createWriteStream(path));
    }
    return { ...facts, size: value.size };
  }

  /** Removes the arguments that were written to disk here. */
  clear(): void {
    if (this.#hasUploads) {
      rmSync(join(this.#folder, UPLOADS), { recursive: true, force: true });
    }
  }

  get #folder(): string {
    return join(this.#scratchFolder, callFolder(this.#callId));
  }

  async #write(data: Uint8Array, index: number, filename: string): Promise<string> {
    const path = await this.#place(index, filename);
    await writeFile(path, data, { mode: 0o600 });
    return path;
  }

  /** Gives a file on disk its name. */
  async #name(sent: string, index: number, filename: string): Promise<string> {
    const path = await this.#place(index, filename);
    // Where links are not allowed, it is copied.
    await link(sent, path).catch(() => copyFile(sent, path));
    return path;
  }

  /** Each has a folder of its own, because callers may give two files one name. */
  async #place(index: number, filename: string): Promise<string> {
    this.#hasUploads = true;
    const folder = join(this.#folder, UPLOADS, String(index));
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return join(folder, uploadName(filename));
  }
}

// The names of uploaded files on disk.

/**
 * Controls, breaks of lines, what is half of a letter, and what turns the direction of reading.
 * Joiners are part of the words of Persian and of India's languages, and of emoji.
 */
const NO_LETTERS = /(?![\u200C\u200D])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/**
 * The last part of the name that a caller sent, with letters of all alphabets. What no file can be
 * called is replaced; a name that is too long keeps its extension.
 */
export function uploadName(sent: string): string {
  const last = sent.split(/[/\\]/).at(-1) ?? "";
  const name = last.replaceAll(NO_LETTERS, "_");
  if (name === "" || name === "." || name === "..") {
    return "file";
  }
  const extension = cut(extname(name), Math.floor(MAX_NAME_BYTES / 2));
  const stem = name.slice(0, name.length - extname(name).length);
  return cut(stem, MAX_NAME_BYTES - Buffer.byteLength(extension)) + extension;
}

/** The beginning of a text, in a bounded number of bytes of UTF-8. */
function cut(text: string, most: number): string {
  const bytes = Buffer.alloc(most);
  const { read } = new TextEncoder().encodeInto(text, bytes);
  return text.slice(0, read);
}
