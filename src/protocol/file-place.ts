/**
 * Files on disk: which of a function's files lie there, and how a function
 * returns one without holding it in memory. A `File` from here reads its bytes
 * when it is asked for them, as web files do.
 */
import { randomUUID } from "node:crypto";
import { createWriteStream, openAsBlob, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";

/** Where the bytes of a file are. */
export interface FilePlace {
  readonly path: string;
  /** Nobody else knows of it: who sends the file may take it away. */
  readonly own: boolean;
}

/** What the bytes do not say of themselves. */
export interface FileDescription {
  /** File name for the caller. Default: that of the path, or none. */
  readonly name?: string;
  /** Default: what the endpoint's `file()` says. */
  readonly contentType?: string;
}

const places = new WeakMap<Blob, FilePlace>();
/** Files that can be written when somebody asks for their path. */
const writers = new WeakMap<Blob, () => Promise<string>>();
/** Removes what was written for a file that nobody has any more. */
const removal = new FinalizationRegistry<string>((path) => rmSync(path, { force: true }));

/** Where a file lies; undefined when it is only in memory, or nobody has said. */
export function placeOf(file: Blob): FilePlace | undefined {
  return places.get(file);
}

/** For the host: the file lies there, or `write` puts it somewhere when it is asked for. */
export function setPlace(file: Blob, place: FilePlace | (() => Promise<string>)): void {
  if (typeof place === "function") {
    writers.set(file, place);
  } else {
    places.set(file, place);
  }
}

/** `copy` has the same bytes as `file`, under another name or type. */
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

/** A file must live as long as its copies do, or `removal` takes their bytes away. */
const originals = new WeakMap<Blob, Blob>();

/**
 * The path of a file on disk, for libraries that want one. Large arguments lie
 * there already; others are written first. An argument's path is good until
 * the call has ended, that of any other file as long as the file is in use.
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

/** A file to return that lies on disk; it is read when the function has returned. */
export async function fileFromPath(path: string, about: FileDescription = {}): Promise<File> {
  const file = await open(path, { name: basename(path), ...about });
  places.set(file, { path, own: false });
  return file;
}

/** A file to return from bytes as they come; they are written to the scratch folder. */
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
