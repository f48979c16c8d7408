/** The content of an artifact: lays out files and packages by path, and indexes them. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { link, realpath, stat } from "node:fs/promises";
import { relative, sep } from "node:path";
import { Readable } from "node:stream";
import { ArtifactError, quoted } from "./artifact-error.ts";
import { ENTRY_NAME, INDEX_NAME, type IndexedFile, MAX_ARTIFACT_FILE_BYTES } from "./index-file.ts";
import type { KnownDigests } from "./known-digests.ts";
import { descriptionsOf, type FindPackage, type InstalledPackage } from "./packages.ts";
import { MAX_PART_BYTES, PARTS_FOLDER, partPath, placed } from "./parts.ts";
import { writeFiles } from "./unpack.ts";

/** Smaller files are copied for a probe: a link saves nothing there. */
const MIN_LINKED_FILE_BYTES = 1024 ** 2;

/** A file's bytes, the path of a file with them, or a part of such a file. */
export type FileSource = string | Uint8Array | FilePart;

interface FilePart {
  readonly path: string;
  /** In bytes; `end` is the first one after it. */
  readonly start: number;
  readonly end: number;
}

/** The bytes of a source. */
export function openSource(source: FileSource): Readable {
  if (typeof source === "string") {
    return createReadStream(source);
  }
  return "path" in source
    ? createReadStream(source.path, { start: source.start, end: source.end - 1 })
    : Readable.from([source]);
}

/**
 * Writes content into a folder, which must not exist yet, to be read and then removed. Large files
 * are links to the author's own where both are on one file system.
 */
export async function writeContent(
  files: readonly IndexedFile[],
  content: ReadonlyMap<string, FileSource>,
  folder: string,
): Promise<void> {
  const sourceOf = ({ path }: IndexedFile): FileSource => content.get(path) ?? "";
  const open = (file: IndexedFile) => openSource(sourceOf(file));
  await writeFiles(placed(files), open, folder, async (parts, path) => {
    const [first] = parts;
    return first !== undefined && (await linkLarge(parts, sourceOf(first), path));
  });
}

async function linkLarge(
  parts: readonly IndexedFile[],
  source: FileSource,
  path: string,
): Promise<boolean> {
  const size = parts.reduce((sum, part) => sum + part.size, 0);
  if (source instanceof Uint8Array || size < MIN_LINKED_FILE_BYTES) {
    return false;
  }
  try {
    await link(await realpath(typeof source === "string" ? source : source.path), path);
    return true;
  } catch {
    // Another file system, or a file of somebody else: it is copied.
    return false;
  }
}

/** Determines the path of each file in the artifact. */
export interface Layout {
  /** The folder that becomes the artifact's root. */
  readonly root: string;
  readonly findPackage: FindPackage;
  /** For the folder of each package, its paths in the artifact. */
  readonly places: ReadonlyMap<string, readonly string[]>;
}

/** The paths of a file in the artifact. The first one is reachable from the root. */
export function placesOf(file: string, { root, findPackage, places }: Layout): string[] {
  const found = findPackage(file);
  const inside = (folder: string): string => relative(folder, file).split(sep).join("/");
  if (found === undefined) {
    return [inside(root)];
  }
  return (places.get(found.root) ?? []).map((place) => `${place}/${inside(found.root)}`);
}

/** The files and the `package.json` files that Node needs to read them, each once. */
export async function withDescriptions(
  files: readonly string[],
  findPackage: FindPackage,
): Promise<string[]> {
  const all = new Set(files);
  for (const file of files) {
    const found = findPackage(file);
    if (found !== undefined) {
      for (const description of await descriptionsOf(file, found)) {
        all.add(description);
      }
    }
  }
  return [...all];
}

/** The packages that files belong to, each once. */
export function packagesOf(files: readonly string[], findPackage: FindPackage): InstalledPackage[] {
  const found = files.flatMap((file) => findPackage(file) ?? []);
  return [...new Map(found.map((it) => [it.root, it])).values()];
}

/** All content by path in the artifact. Throws an `ArtifactError` for a file without a path. */
export function layOut(
  files: readonly string[],
  compiled: ReadonlyMap<string, Uint8Array>,
  layout: Layout,
): Map<string, FileSource> {
  const content = new Map<string, FileSource>(compiled);
  for (const file of files) {
    for (const place of placesOf(file, layout)) {
      if (compiled.has(place) || place === INDEX_NAME) {
        throw new ArtifactError(
          `${file} would lie at ${place} in the artifact, where tessera puts a file of its own; give it another name`,
        );
      }
      content.set(place, file);
    }
  }
  return content;
}

/** The content of an artifact, with its large files in parts. */
export async function inParts(
  content: ReadonlyMap<string, FileSource>,
): Promise<Map<string, FileSource>> {
  const parted = new Map<string, FileSource>();
  for (const [path, source] of content) {
    if (path.startsWith(PARTS_FOLDER)) {
      throw new ArtifactError(
        `${quoted(path)} has the name of a part of a file: rename its folder`,
      );
    }
    const size = typeof source === "string" ? (await stat(source)).size : 0;
    if (size <= MAX_PART_BYTES) {
      parted.set(path, source);
    } else {
      addParts(parted, { path: `${PARTS_FOLDER}${path}`, source: String(source), size });
    }
  }
  return parted;
}

/** Adds the parts of a file, as `<path>/0000` and on. */
export function addParts(
  content: Map<string, FileSource>,
  { path, source, size }: { readonly path: string; readonly source: string; readonly size: number },
): void {
  for (let start = 0; start < size; start += MAX_PART_BYTES) {
    const end = Math.min(start + MAX_PART_BYTES, size);
    content.set(partPath(path, start / MAX_PART_BYTES), { path: source, start, end });
  }
}

/**
 * Reads every file once to get its size and digest, but for the parts of large files whose digests
 * are `known`.
 */
export async function indexFiles(
  content: ReadonlyMap<string, FileSource>,
  known?: KnownDigests,
): Promise<IndexedFile[]> {
  const files: IndexedFile[] = [];
  for (const [path, source] of content) {
    files.push({ path, ...(await factsOf(source, known)) });
  }
  await known?.save();
  return files;
}

async function factsOf(
  source: FileSource,
  known: KnownDigests | undefined,
): Promise<Omit<IndexedFile, "path">> {
  const hash = createHash("sha256");
  if (source instanceof Uint8Array) {
    const sha256 = hash.update(source).digest("hex");
    return { size: source.length, sha256, executable: false };
  }
  const isPart = typeof source !== "string";
  const path = isPart ? source.path : source;
  const { mode, size: announced } = await stat(path);
  if (!isPart && announced > MAX_ARTIFACT_FILE_BYTES) {
    throw new ArtifactError(
      `${path} has ${announced} bytes; a file in an artifact may have at most ${MAX_ARTIFACT_FILE_BYTES}`,
    );
  }
  let size = isPart ? source.end - source.start : 0;
  const read = async (): Promise<string> => {
    size = 0;
    for await (const chunk of openSource(source)) {
      hash.update(chunk);
      size += chunk.length;
    }
    return hash.digest("hex");
  };
  const sha256 = isPart && known ? await known.digestOf(source, read) : await read();
  return { size, sha256, executable: (mode & 0o100) !== 0 };
}

/** True for the name of native code, which runs on one platform only. */
export function isNative(path: string): boolean {
  return path !== ENTRY_NAME && /\.(?:node|dylib|dll|so(?:\.\d+)*)$/.test(path);
}
