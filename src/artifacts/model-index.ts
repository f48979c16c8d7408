/**
 * The index of a version of a model: the `tessera.json` of an artifact with files alone. Its
 * digest, its parts of large files and the rules for its paths are those of artifacts.
 */
import { ArtifactError } from "./artifact-error.ts";
import {
  checkFileList,
  digestOf,
  INDEX_NAME,
  type IndexedFile,
  MAX_INDEX_BYTES,
  sortedFiles,
} from "./index-file.ts";
import { faultOfIndex } from "./index-schema.ts";
import { placed } from "./parts.ts";

/** Of a model, beside the formats of artifacts. */
const MODEL_FORMAT = 4;

/** Files of a version of a model: a data set of small files is something other than weights. */
export const MAX_MODEL_FILES = 50_000;

/** Names of files that hold pickled objects: to load one is to run what is in it. */
const PICKLED = /\.(?:bin|ckpt|joblib|pickle|pkl|pt|pth)$/i;

interface ModelIndex {
  readonly format: typeof MODEL_FORMAT;
  readonly kind: "model";
  /** Sorted by path. */
  readonly files: readonly IndexedFile[];
}

/** An index with what follows from it. */
export interface CheckedModelIndex {
  readonly index: ModelIndex;
  readonly text: string;
  /** SHA-256 of the text, in hex. */
  readonly digest: string;
  /** Files as they are on disk, each large one as a whole, sorted by path. */
  readonly paths: readonly string[];
  /** What those who use it should know. */
  readonly warnings: readonly string[];
}

/** Creates and checks the index of files. Throws an `ArtifactError`. */
export function createModelIndex(files: readonly IndexedFile[]): CheckedModelIndex {
  return verifyModelIndex(canonical(files));
}

/** Parses an untrusted index. Throws an `ArtifactError` that says what is wrong. */
export function verifyModelIndex(text: string): CheckedModelIndex {
  if (Buffer.byteLength(text) > MAX_INDEX_BYTES) {
    throw new ArtifactError(
      `the list of the model's files is larger than ${MAX_INDEX_BYTES} bytes: put small files together`,
    );
  }
  let index: ModelIndex;
  try {
    index = JSON.parse(text) as ModelIndex;
  } catch (err) {
    throw new ArtifactError(`${INDEX_NAME} is not JSON`, { cause: err });
  }
  if (index?.format !== MODEL_FORMAT) {
    throw new ArtifactError(`${INDEX_NAME} is not the index of a model, whose format is 4`);
  }
  const fault = faultOfIndex(index);
  if (fault !== undefined) {
    throw new ArtifactError(`${INDEX_NAME}${fault}`);
  }
  checkFileList(index.files, { what: "model", maxFiles: MAX_MODEL_FILES });
  if (canonical(index.files) !== text) {
    throw new ArtifactError(`${INDEX_NAME} is not in the one form that this content has`);
  }
  const paths = placed(index.files).flatMap(({ path, start }) => (start === 0 ? [path] : []));
  return { index, text, digest: digestOf(text), paths, warnings: warningsOf(paths) };
}

/** What those who use files of these names should know. */
export function warningsOf(paths: readonly string[]): string[] {
  const pickled = paths.filter((path) => PICKLED.test(path));
  const [first] = pickled;
  return first === undefined
    ? []
    : [
        `${pickled.length === 1 ? first : `${pickled.length} files, such as ${first},`} may hold pickled objects, which run code when they are loaded: take weights in safetensors where there are some`,
      ];
}

function canonical(files: readonly IndexedFile[]): string {
  return JSON.stringify({ files: sortedFiles(files), format: MODEL_FORMAT, kind: "model" });
}
