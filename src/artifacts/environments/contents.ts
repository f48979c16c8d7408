/**
 * The list of all files of an environment with their digests, `contents.json`: it is written
 * when the environment is complete, and an environment of an earlier life is compared with it.
 */
import { createHash, hash } from "node:crypto";
import { constants, createReadStream } from "node:fs";
import { lstat, open, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

const LIST_NAME = "contents.json";
/** Bytes that are read at a time. */
const READ_CHUNK_BYTES = 256 * 1024;
/** Files that are verified at a time: most are small, and wait for the disk. */
const MAX_PARALLEL_READS = 8;

export interface Contents {
  /** Of all files. */
  readonly bytes: number;
  /** The digest of each file, by its path in the environment. */
  readonly sha256: { readonly [path: string]: string };
}

/** Lists what is in a folder, and writes the list there. */
export async function writeContents(folder: string): Promise<Contents> {
  let bytes = 0;
  const sha256: Record<string, string> = {};
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile()) {
      bytes += (await lstat(path)).size;
      sha256[path.slice(folder.length + 1)] = await digestOf(path);
    }
  }
  const contents = { bytes, sha256 };
  const list = join(folder, LIST_NAME);
  // A package may have brought one, which is the cache's file, too.
  await rm(list, { recursive: true, force: true });
  await writeFile(list, JSON.stringify(contents), { flag: "wx" });
  return contents;
}

/** The list of a complete environment. Rejects when it is not there. */
export async function readContents(folder: string): Promise<Contents> {
  return JSON.parse(await readFile(join(folder, LIST_NAME), "utf8")) as Contents;
}

/** Rejects when a file is not as the list says. */
export async function verifyContents(folder: string, { sha256 }: Contents): Promise<void> {
  // One iterator for all: each takes the next file when it has digested its own.
  const files = Object.entries(sha256).values();
  const digestNext = async (): Promise<void> => {
    for (const [path, expected] of files) {
      if ((await digestOf(join(folder, path))) !== expected) {
        throw new Error(`${path} is damaged`);
      }
    }
  };
  await Promise.all(Array.from({ length: MAX_PARALLEL_READS }, digestNext));
}

async function digestOf(path: string): Promise<string> {
  const { size } = await lstat(path);
  if (size <= READ_CHUNK_BYTES) {
    return hash("sha256", await readFile(path), "hex");
  }
  const digest = createHash("sha256");
  for await (const chunk of createReadStream(path, { highWaterMark: READ_CHUNK_BYTES })) {
    digest.update(chunk);
  }
  return digest.digest("hex");
}

/** The start of a file that somebody else wrote, as text; empty for no file, and for a link. */
export async function readStart(path: string, maxBytes: number): Promise<string> {
  try {
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    await using file = await open(path, flags);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(maxBytes));
    return buffer.toString("utf8", 0, bytesRead);
  } catch {
    return "";
  }
}
