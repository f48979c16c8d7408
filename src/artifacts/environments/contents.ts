/**
 * The list of all files of an environment with their digests, `contents.json`: it is written
 * when the environment is complete, and an environment of an earlier life is compared with it.
 */
import { createHash, hash } from "node:crypto";
import { constants, createReadStream } from "node:fs";
import { link, lstat, open, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

const LIST_NAME = "contents.json";
/** Bytes that are read at a time. */
const READ_CHUNK_BYTES = 256 * 1024;
/** Smaller files are not shared between folders: to look for them costs more than they take. */
const MIN_SHARED_FILE_BYTES = 1024 ** 2;
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

/**
 * Replaces large files of a folder that is being made by links to equal ones of another folder, so
 * that both have them once on the disk, and once in the memory of the machine. What became of the
 * other's file since it was listed is looked at first.
 */
export async function shareContents(
  { folder, sha256 }: Pick<Contents, "sha256"> & { readonly folder: string },
  other: Pick<Contents, "sha256"> & { readonly folder: string },
): Promise<void> {
  const there = new Map(Object.entries(other.sha256).map(([path, digest]) => [digest, path]));
  for (const [path, digest] of Object.entries(sha256)) {
    const equal = there.get(digest);
    if (equal !== undefined) {
      await share(join(folder, path), join(other.folder, equal), {
        digest,
        beside: join(folder, LIST_NAME),
      });
    }
  }
}

async function share(
  path: string,
  equal: string,
  { digest, beside }: { readonly digest: string; readonly beside: string },
): Promise<void> {
  const own = await lstat(path);
  if (own.size < MIN_SHARED_FILE_BYTES) {
    return;
  }
  const unnamed = `${beside}.link`;
  try {
    const { ino, mode } = await lstat(equal);
    if (ino !== own.ino && mode === own.mode && (await digestOf(equal)) === digest) {
      await link(equal, unnamed);
      await rename(unnamed, path);
    }
  } catch {
    // It was removed meanwhile, or this file system has no links: each has its own.
    await rm(unnamed, { force: true });
  }
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
