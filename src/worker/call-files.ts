/** The files of one call in a worker: arguments that the node wrote to disk, and the result. */
import { createWriteStream, openAsBlob, rmSync } from "node:fs";
import { copyFile, mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
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

export class CallFiles {
  readonly #scratchFolder: string;
  readonly #callId: number;
  /** Paths of inline arguments that were written to disk, removed with the call. */
  #written: string[] | undefined;

  constructor(scratchFolder: string, callId: number) {
    this.#scratchFolder = scratchFolder;
    this.#callId = callId;
  }

  /** An argument as a `File`; `index` is its index among the files of the call. */
  async argument(file: FileValue | FileOnDisk, index: number): Promise<File> {
    const { contentType, filename = "" } = file;
    const path = join(this.#folder, argumentName(index));
    if ("size" in file) {
      const argument = new File([await openAsBlob(path)], filename, { type: contentType });
      setPlace(argument, { path, own: false });
      return argument;
    }
    const data = file.data as Uint8Array<ArrayBuffer>;
    const argument = new File([data], filename, { type: contentType });
    let written: Promise<string> | undefined;
    setPlace(argument, () => (written ??= this.#write(path, data)));
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
    for (const path of this.#written ?? []) {
      rmSync(path, { force: true });
    }
  }

  get #folder(): string {
    return join(this.#scratchFolder, callFolder(this.#callId));
  }

  async #write(path: string, data: Uint8Array): Promise<string> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    this.#written = [...(this.#written ?? []), path];
    await writeFile(path, data, { mode: 0o600 });
    return path;
  }
}
