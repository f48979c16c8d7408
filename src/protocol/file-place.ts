/**
 * Files on disk: records which of a function's files are on disk, and lets a
 * function return one without holding it in memory. Such a `File` reads its bytes
 * lazily, as web files do.
 */
import { randomUUID } from "node:crypto";
import { createWriteStream, openAsBlob, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";

/** Where the bytes of a file are on disk. */
interface FilePlace {
  readonly path: string;
  /** True when the file belongs to the SDK: sending it may move it. */
  readonly own: boolean;
}

/** The name and type of a file. */
export interface FileDescription {
  /** The file name that the caller sees. Default: the last part of the path, or none. */
  readonly name?: string;
  /** The media type. Default: that of the endpoint's `file()`, or `application/octet-stream`. */
  readonly contentType?: string;
}

const places = new WeakMap<Blob, FilePlace>();
/** Files that are written to disk when their path is first requested. */
const writers = new WeakMap<Blob, () => Promise<string>>();
/** Removes the copy on disk when its file was garbage-collected. */
const removal = new FinalizationRegistry<string>((path) => rmSync(path, { force: true }));

/** The place of a file on disk; undefined when it is in memory or unknown. */
export function placeOf(file: Blob): FilePlace | undefined {
  return places.get(file);
}

/** For the worker: sets a file's place, or a function that writes it when its path is requested. */
export function setPlace(file: Blob, place: FilePlace | (() => Promise<string>)): void {
  if (typeof place === "function") {
    writers.set(file, place);
  } else {
    places.set(file, place);
  }
}

/** Gives `copy` the place of `file`, which has the same bytes under another name or type. */
export function sharePlace(file: Blob, copy: Blob): void {
  const place = places.get(file);
  const write = writers.get(file);
  if (place) {
    places.set(copy, place);
    originals.set(copy, file);
  } else if (write) {
    writers.set(copy, write);
  }
}

/** Keeps a file alive as long as its copies, so that `removal` does not delete their bytes. */
const originals = new WeakMap<Blob, Blob>();

/**
 * The path of a file on disk, for libraries that need one. Large arguments are on
 * disk already; other files are written first. The path of an argument is valid
 * until the call has ended, that of another file while the `File` object is in use.
 */
export async function filePath(file: File | Blob): Promise<string> {
  const place = places.get(file);
  if (place) {
    return place.path;
  }
  const write = writers.get(file);
  if (write) {
    return write();
  }
  const path = await writeTemporary(Readable.fromWeb(file.stream() as ReadableStream));
  places.set(file, { path, own: false });
  removal.register(file, path);
  return path;
}

/**
 * A file on disk to return from an endpoint. It is read after the function has
 * returned, so it must still exist then. Rejects when the file cannot be opened.
 */
export async function fileFromPath(path: string, about: FileDescription = {}): Promise<File> {
  const file = await open(path, { name: basename(path), ...about });
  places.set(file, { path, own: false });
  return file;
}

/** A file to return from an endpoint, from a stream. The bytes are written to the scratch folder. */
export async function fileFromStream(
  stream: AsyncIterable<Uint8Array>,
  about: FileDescription = {},
): Promise<File> {
  const path = await writeTemporary(Readable.from(stream));
  const file = await open(path, about);
  places.set(file, { path, own: true });
  removal.register(file, path);
  return file;
}

async function open(path: string, { name = "", contentType = "" }: FileDescription): Promise<File> {
  return new File([await openAsBlob(path)], name, { type: contentType });
}

async function writeTemporary(stream: Readable): Promise<string> {
  const path = join(tmpdir(), `file-${randomUUID()}`);
  try {
    await pipeline(stream, createWriteStream(path, { flags: "wx", mode: 0o600 }));
  } catch (err) {
    rmSync(path, { force: true });
    throw err;
  }
  return path;
}
