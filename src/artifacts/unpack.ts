/**
 * Unpacks an artifact into a folder atomically: the folder is written under another
 * name, verified, and renamed.
 */
import { randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { ArtifactError, quoted } from "./artifact-error.ts";
import {
  type ArtifactIndex,
  digestOf,
  INDEX_NAME,
  type IndexedFile,
  unpackedFiles,
  verifyIndex,
} from "./index-file.ts";
import { type PlacedFile, placed } from "./parts.ts";
import { readArtifact } from "./read.ts";
import { verified } from "./verified.ts";

/** Opens the content of a file. Called for one file after another, in the index's order. */
export type OpenFile = (file: IndexedFile) => AsyncIterable<Uint8Array>;

/**
 * Makes a file that is on this disk already, at a path whose folder is there; false: it is not, and
 * nothing was made. A large file is given as its parts.
 */
export type LinkFile = (parts: readonly IndexedFile[], path: string) => Promise<boolean>;

interface UnpackOptions {
  /** The digest that the artifact must have. Default: any. */
  readonly digest?: string;
}

/**
 * Unpacks an artifact from a file or a stream into a folder that does not exist yet
 * or holds this artifact. For an invalid artifact, rejects with an `ArtifactError`
 * and leaves nothing behind.
 */
export async function unpackArtifact(
  source: string | AsyncIterable<Uint8Array>,
  folder: string,
  options: UnpackOptions = {},
): Promise<ArtifactIndex> {
  await using reader = await readArtifact(source);
  const { digest = reader.digest } = options;
  if (reader.digest !== digest) {
    throw new ArtifactError(
      `the artifact is another one: its digest is ${reader.digest}, expected was ${digest}`,
    );
  }
  return await assemble(reader.text, folder, {
    open: (file) => reader.open(file),
    end: () => reader.end(),
    select: ({ files }) => files,
    whole: false,
  });
}

/**
 * Like `unpackArtifact`, for an artifact whose files come one by one, such as from a
 * content-addressed store. Packages that it brings are left out: an environment is made
 * of them. Default of `link`: every file is opened.
 */
export async function assembleArtifact(
  indexText: string,
  { open, link }: { readonly open: OpenFile; readonly link?: LinkFile },
  folder: string,
): Promise<ArtifactIndex> {
  return await assemble(indexText, folder, {
    open,
    link,
    end: async () => {},
    select: unpackedFiles,
    whole: true,
  });
}

interface Source {
  readonly open: OpenFile;
  readonly link?: LinkFile | undefined;
  /** Called after the last file. */
  end(): Promise<void>;
  /** The files to write. */
  select(index: ArtifactIndex): readonly IndexedFile[];
  /** Whether large files are written whole; else each of their parts is a file. */
  readonly whole: boolean;
}

async function assemble(indexText: string, folder: string, source: Source): Promise<ArtifactIndex> {
  const index = verifyIndex(indexText);
  const unfinished = `${folder}.${randomUUID()}.partial`;
  try {
    const files = source.select(index);
    const open = (file: IndexedFile) => verified(source.open(file), file);
    const places = source.whole ? placed(files) : files.map(asItIs);
    await writeFiles(places, open, unfinished, source.link);
    await source.end();
    await writeFile(join(unfinished, INDEX_NAME), indexText, { flag: "wx" });
    await rename(unfinished, folder);
  } catch (err) {
    // A file that was being opened when its content was refused may come into being meanwhile.
    await rm(unfinished, { recursive: true, force: true, maxRetries: 5 });
    if (!isTaken(err)) {
      throw err;
    }
    if (!(await holds(folder, indexText))) {
      throw new ArtifactError(`${folder} exists and holds something else`, { cause: err });
    }
  }
  return index;
}

/** A file that stays as it is in the index, also where it is a part. */
function asItIs(file: IndexedFile): PlacedFile<IndexedFile> {
  return { file, path: file.path, start: 0 };
}

/**
 * Writes files into a folder, which must not exist yet, so that it contains no symbolic links. Parts
 * of one file follow one another.
 */
export async function writeFiles(
  files: readonly PlacedFile<IndexedFile>[],
  open: (file: IndexedFile) => AsyncIterable<Uint8Array>,
  folder: string,
  link?: LinkFile,
): Promise<void> {
  await mkdir(folder, { mode: 0o700 });
  for (const [place, parts] of Map.groupBy(files, ({ path }) => path)) {
    const path = join(folder, place);
    if (!path.startsWith(join(folder, "/"))) {
      throw new ArtifactError(`${quoted(place)} is no path in an artifact`);
    }
    await mkdir(dirname(path), { recursive: true });
    const isThere = await link?.(
      parts.map(({ file }) => file),
      path,
    );
    for (const { file, start } of isThere ? [] : parts) {
      const mode = file.executable ? 0o755 : 0o644;
      const flags = start === 0 ? "wx" : "a";
      await pipeline(open(file), createWriteStream(path, { flags, mode }));
    }
  }
}

/** True when the folder exists: unpacked by another process, or something else. */
function isTaken(err: unknown): boolean {
  return ["EEXIST", "ENOTEMPTY", "ENOTDIR"].includes((err as NodeJS.ErrnoException).code ?? "");
}

async function holds(folder: string, indexText: string): Promise<boolean> {
  try {
    return digestOf(await readFile(join(folder, INDEX_NAME), "utf8")) === digestOf(indexText);
  } catch {
    return false;
  }
}
