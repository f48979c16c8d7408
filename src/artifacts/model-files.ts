/**
 * A folder as a version of a model: its files with their index. Links are refused, but those of a
 * snapshot in the cache of Hugging Face, whose files are links to `blobs/` beside it.
 */
import { open, opendir, realpath } from "node:fs/promises";
import { dirname, join, relative, resolve, sep } from "node:path";
import { ArtifactError, quoted } from "./artifact-error.ts";
import { type FileSource, indexFiles, inParts, openSource } from "./content.ts";
import type { IndexedFile } from "./index-file.ts";
import type { KnownDigests } from "./known-digests.ts";
import { type CheckedModelIndex, createModelIndex, MAX_MODEL_FILES } from "./model-index.ts";
import { verified } from "./verified.ts";

/** How a file begins that stands for one in Git LFS. */
const LFS_POINTER = Buffer.from("version https://git-lfs.github.com/spec/v1");

interface ModelFolder extends CheckedModelIndex {
  /** The content of a file of the index, verified while it is read. */
  open(file: IndexedFile): AsyncIterable<Uint8Array>;
}

/**
 * Reads a folder, each file once, but for what is `known`. Rejects with an `ArtifactError` for what
 * a model may not have.
 */
export async function readModelFolder(folder: string, known?: KnownDigests): Promise<ModelFolder> {
  const root = resolve(folder);
  const content = new Map<string, FileSource>();
  for await (const path of filesIn(root)) {
    if (content.size === MAX_MODEL_FILES) {
      throw new ArtifactError(`${folder} has more than ${MAX_MODEL_FILES} files`);
    }
    content.set(relative(root, path).split(sep).join("/"), path);
  }
  if (content.size === 0) {
    throw new ArtifactError(`${folder} has no files`);
  }
  for (const [name, path] of content) {
    if (await beginsAsPointer(String(path))) {
      throw new ArtifactError(
        `${quoted(name)} is a pointer of Git LFS in place of its content: run git lfs pull`,
      );
    }
  }
  const parted = await inParts(content);
  const checked = createModelIndex(await indexFiles(parted, known));
  return {
    ...checked,
    open: (file) => {
      const source = parted.get(file.path);
      if (source === undefined) {
        throw new ArtifactError(`the model has no file ${quoted(file.path)}`);
      }
      return verified(openSource(source), file);
    },
  };
}

async function* filesIn(root: string): AsyncGenerator<string, void, undefined> {
  const snapshot = join(dirname(dirname(root)), "blobs") + sep;
  const folders = [root];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for await (const entry of await opendir(folder)) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) {
        folders.push(path);
      } else if (entry.isFile()) {
        yield path;
      } else if (entry.isSymbolicLink() && (await realpath(path)).startsWith(snapshot)) {
        yield path;
      } else {
        throw new ArtifactError(
          `${path} is no file or folder, such as a link: put the file itself there`,
        );
      }
    }
  }
}

async function beginsAsPointer(path: string): Promise<boolean> {
  await using file = await open(path);
  const head = Buffer.alloc(LFS_POINTER.length);
  const { bytesRead } = await file.read(head, 0, head.length, 0);
  return bytesRead === head.length && head.equals(LFS_POINTER);
}
