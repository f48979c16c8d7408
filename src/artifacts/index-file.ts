/**
 * The index of an artifact, `tessera.json`: the manifest of the service and the list
 * of its files. An artifact is its index and these files, however they are stored.
 * Its digest is that of the index's text, which contains the digests of the files.
 *
 * The text is canonical: no spaces, members in alphabetical order, files sorted by
 * path (by UTF-16 code units, as in RFC 8785). Only the service's manifest keeps its
 * order, because forms and documents show arguments in the order in which they were
 * written. A text in any other form is refused.
 */
import { createHash } from "node:crypto";
import { readManifest } from "../pool/checks/check-manifest.ts";
import type { ServiceManifest } from "../protocol/manifest.ts";
import { version } from "../version.ts";
import { ArtifactError, quoted } from "./artifact-error.ts";
import { faultOfIndex } from "./index-schema.ts";
import { placed } from "./parts.ts";

export const INDEX_NAME = "tessera.json";
export const ENTRY_NAME = "service.js";

/** The packages of a service in Python, as requirements with hashes. */
export const LOCK_NAME = "tessera.lock";
/** The system packages of a service, each with its version and digest; see `layers/lock.ts`. */
export const SYSTEM_LOCK_NAME = "tessera.packages";
/** The container image of a service, with its digest; see `images/lock.ts`. */
export const IMAGE_LOCK_NAME = "tessera.image";
/** Where an artifact has the packages themselves, when it brings them. */
export const WHEELS_FOLDER = "wheels/";

/** Of a service in Node: its code is one module. */
const NODE_FORMAT = 1;
/** Of a service in Python: its sources, and what it is run with. */
const PYTHON_FORMAT = 2;
/** Of a service whose code is in workers on other machines: its manifest, and no files. */
const REMOTE_FORMAT = 3;

const FORMATS: readonly number[] = [NODE_FORMAT, PYTHON_FORMAT, REMOTE_FORMAT];

/**
 * Files in an artifact: a service with its packages has hundreds, and one with more than this
 * is something other than a service.
 */
export const MAX_ARTIFACT_FILES = 20_000;
/**
 * All files of an artifact together, wherever it is read. A platform takes no more than an
 * organization may store.
 */
const MAX_ARTIFACT_BYTES = 1024 ** 4;
/**
 * One file of an artifact, or one part of a large one: it is uploaded as a whole, and again from
 * its start when the connection broke.
 */
export const MAX_ARTIFACT_FILE_BYTES = 256 * 1024 ** 2;
/**
 * Index of an artifact: room for the names of all files and for schemas; it is parsed in one
 * go.
 */
export const MAX_INDEX_BYTES = 8 * 1024 ** 2;

export interface IndexedFile {
  /** From the artifact's root, with slashes. */
  readonly path: string;
  /** In bytes. */
  readonly size: number;
  /** Digest of the content, in hex. */
  readonly sha256: string;
  readonly executable: boolean;
}

/** What a service in Python is run with. */
export interface PythonFacts {
  /** The minor version of the interpreter that its packages are locked for, such as `3.11`. */
  readonly version: string;
  /** The dotted name of its module, if it is imported by that instead of as a file. */
  readonly module?: string;
  /** The name of the service in its module, if that has several. */
  readonly object?: string;
}

/** A version of a model that a service has, at the time of its deploy. */
export interface PinnedModel {
  /** What the service calls it. */
  readonly name: string;
  /** The model's name on the platform. */
  readonly model: string;
  readonly version: number;
  /** Of the version's index. */
  readonly digest: string;
  /** All its files together, in bytes. */
  readonly size: number;
  /** The repository at Hugging Face that it is of, and the commit. */
  readonly repository?: string;
  readonly commit?: string;
  /** In BentoML's store of models, such as `reader:v3`. */
  readonly tag?: string;
  /** What the code calls this version: a branch or tag of the repository, or BentoML's `latest`. */
  readonly revision?: string;
}

export interface ArtifactIndex {
  readonly format: typeof NODE_FORMAT | typeof PYTHON_FORMAT | typeof REMOTE_FORMAT;
  /**
   * `remote`: it has no files, because its workers are on other machines and bring the code.
   * Undefined: the files are the code.
   */
  readonly kind?: "remote";
  /** The major version of the SDK that it was built with, which is required to run it. */
  readonly tessera: string;
  /** The service's name. */
  readonly name: string;
  /** The path of the service's module: `service.js`, a file in Python, or empty for kind `remote`. */
  readonly entry: string;
  /** The platform of its native code, or of packages it brings, such as `linux-x64-glibc`. Undefined: any. */
  readonly platform?: string;
  /** Of a service in Python. */
  readonly python?: PythonFacts;
  /** The models of the service, sorted by name. Undefined: none. */
  readonly models?: readonly PinnedModel[];
  readonly service: ServiceManifest;
  /** Sorted by path. */
  readonly files: readonly IndexedFile[];
}

/** Creates and checks the index of a service and its files. Throws an `ArtifactError`. */
export function createIndex(
  service: ServiceManifest,
  files: readonly IndexedFile[],
  kind: Partial<Pick<ArtifactIndex, "platform" | "entry" | "python">> = {},
): ArtifactIndex {
  const text = canonical({
    format: kind.python !== undefined ? PYTHON_FORMAT : NODE_FORMAT,
    tessera: ownMajor(),
    name: service.name,
    entry: ENTRY_NAME,
    ...kind,
    service,
    files: files.toSorted((a, b) => (a.path < b.path ? -1 : 1)),
  });
  return verifyIndex(text);
}

/**
 * Creates the index of a service whose workers bring their own code, from its manifest, which
 * is not trusted. Throws an `ArtifactError`.
 */
export function createRemoteIndex(manifest: unknown): ArtifactIndex {
  const service = readManifest(manifest);
  if (service === undefined) {
    throw new ArtifactError(`${faultOfManifest(manifest)}: see docs/workers.md`);
  }
  const index = { tessera: ownMajor(), name: service.name, service, files: [], entry: "" };
  return verifyIndex(canonical({ ...index, format: REMOTE_FORMAT, kind: "remote" }));
}

/** Where a manifest is not valid, as closely as it is known. */
function faultOfManifest(manifest: unknown): string {
  const { name, endpoints } = (manifest ?? {}) as Partial<Record<keyof ServiceManifest, unknown>>;
  if (typeof name !== "string" || !Array.isArray(endpoints)) {
    return "the manifest must have a name and a list of endpoints";
  }
  const at = endpoints.findIndex((one) => !readManifest({ name, endpoints: [one] }));
  return at < 0
    ? "the manifest is not valid, or too large"
    : `endpoint ${at + 1} of the manifest (${quoted(String(endpoints[at]?.name))}) is not valid`;
}

/** The canonical text of an index. */
export function writeIndex(index: ArtifactIndex): string {
  return canonical(index);
}

/** The digest of an artifact, in hex: SHA-256 of its index's text. */
export function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** The file name of an artifact: `<name>-<start of the digest>.tessera`. */
export function fileNameOf(name: string, digest: string): string {
  return `${name}-${digest.slice(0, 12)}.tessera`;
}

/** Parses an untrusted index. Throws an `ArtifactError` that says what is wrong. */
export function verifyIndex(text: string): ArtifactIndex {
  if (Buffer.byteLength(text) > MAX_INDEX_BYTES) {
    throw new ArtifactError(`${INDEX_NAME} is larger than ${MAX_INDEX_BYTES} bytes`);
  }
  const parsed = parse(text);
  checkVersions(parsed);
  const fault = faultOfIndex(parsed);
  if (fault !== undefined) {
    throw new ArtifactError(`${INDEX_NAME}${fault}`);
  }
  const index = parsed as ArtifactIndex;
  checkFiles(index);
  checkModels(index);
  const { service, name } = index;
  if (!readManifest(service) || service.name !== name) {
    throw new ArtifactError(`${INDEX_NAME}/service does not describe the service ${quoted(name)}`);
  }
  if (canonical(index) !== text) {
    throw new ArtifactError(`${INDEX_NAME} is not in the one form that this content has`);
  }
  return index;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (err) {
    throw new ArtifactError(`${INDEX_NAME} is not JSON`, { cause: err });
  }
}

/** Runs before the schema check, since this version cannot know the format of other versions. */
function checkVersions(index: unknown): void {
  const { format, tessera } = (index ?? {}) as { format?: unknown; tessera?: unknown };
  if (Number.isSafeInteger(format) && !FORMATS.includes(Number(format))) {
    throw new ArtifactError(
      `the artifact has format ${format}, and this version of tessera reads formats ${FORMATS.join(", ")}; build it again with tessera ${version}`,
    );
  }
  if (typeof tessera === "string" && tessera !== ownMajor()) {
    throw new ArtifactError(
      `the artifact was built for version ${quoted(tessera)} of tessera, and this is ${version}; build it again with that`,
    );
  }
}

function checkFiles({ files, entry, python, kind }: ArtifactIndex): void {
  if (kind === "remote") {
    return; // Its schema allows no files.
  }
  checkFileList(files, { what: "artifact", maxFiles: MAX_ARTIFACT_FILES });
  const named = python?.module?.replaceAll(".", "/");
  if (named !== undefined && ![`${named}.py`, `${named}/__init__.py`].includes(entry)) {
    throw new ArtifactError(`${INDEX_NAME}/python/module is not the name of ${quoted(entry)}`);
  }
  if (
    [SYSTEM_LOCK_NAME, IMAGE_LOCK_NAME].every((name) => files.some(({ path }) => path === name))
  ) {
    throw new ArtifactError(
      "the service names an image and system packages: put the packages into the image",
    );
  }
  const needed = python === undefined ? [entry] : [entry, LOCK_NAME];
  for (const name of needed) {
    if (!files.some(({ path }) => path === name)) {
      throw new ArtifactError(
        `the artifact lacks ${quoted(name)}, ${name === entry ? "the service's code" : "the list of its packages"}`,
      );
    }
  }
}

/** A service has each of its models once, and no others. */
function checkModels({ models = [], service }: ArtifactIndex): void {
  const declared = Object.keys(service.models ?? {});
  const names = models.map(({ name }) => name);
  if (new Set(names).size < names.length || !declared.every((name) => names.includes(name))) {
    // Before its deploy, it has none.
    if (models.length > 0) {
      throw new ArtifactError(
        `${INDEX_NAME}/models does not have each model of the service once: ${declared.join(", ")}`,
      );
    }
  }
}

/** Throws an `ArtifactError` for files that an index may not list. */
export function checkFileList(
  files: readonly IndexedFile[],
  { what, maxFiles }: { readonly what: "artifact" | "model"; readonly maxFiles: number },
): void {
  if (files.length > maxFiles) {
    throw new ArtifactError(`the ${what} has ${files.length} files; at most ${maxFiles} may be`);
  }
  for (const { path, size } of files) {
    checkPath(path);
    if (size > MAX_ARTIFACT_FILE_BYTES) {
      throw new ArtifactError(
        `${quoted(path)} has ${size} bytes; a file may have at most ${MAX_ARTIFACT_FILE_BYTES}`,
      );
    }
  }
  const total = bytesOf(files);
  if (total > MAX_ARTIFACT_BYTES) {
    throw new ArtifactError(
      `the ${what} has ${total} bytes; all its files together may have at most ${MAX_ARTIFACT_BYTES}`,
    );
  }
  checkTogether([INDEX_NAME, ...files.map(({ path }) => path)]);
  const wholes = placed(files).filter(({ start }) => start === 0);
  checkTogether([INDEX_NAME, ...wholes.map(({ path }) => path)]);
}

/** The files that a node unpacks: without the packages, from which it makes an environment. */
export function unpackedFiles({
  files,
  python,
}: Pick<ArtifactIndex, "files" | "python">): readonly IndexedFile[] {
  return python === undefined ? files : files.filter(({ path }) => !path.startsWith(WHEELS_FOLDER));
}

/** The bytes of all these files, also of those that have one content. */
export function bytesOf(files: readonly IndexedFile[]): number {
  return files.reduce((sum, { size }) => sum + size, 0);
}

/** The same artifact with these models. Throws an `ArtifactError`. */
export function withModels(index: ArtifactIndex, models: readonly PinnedModel[]): ArtifactIndex {
  const { models: _, ...rest } = index;
  return verifyIndex(canonical({ ...rest, ...(models.length > 0 && { models }) }));
}

function canonical({ service, files, python, models, ...others }: ArtifactIndex): string {
  const facts = {
    ...(python && { python: sorted(python) }),
    ...(models && {
      models: models.toSorted((a, b) => (a.name < b.name ? -1 : 1)).map((one) => sorted(one)),
    }),
  };
  return JSON.stringify(sorted({ ...others, ...facts, service, files: sortedFiles(files) }));
}

/** Files as the one form of an index has them: by path, with their members in order. */
export function sortedFiles(files: readonly IndexedFile[]): object[] {
  return files.toSorted((a, b) => (a.path < b.path ? -1 : 1)).map((file) => sorted(file));
}

function sorted(value: object): object {
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function ownMajor(): string {
  return version.split(".")[0] ?? "";
}

// Validation of paths in an artifact: they are relative, use slashes, mean the same
// file on every system, and never lead outside the artifact.

/** One name in the path of an artifact's file: what every common file system takes. */
const MAX_PATH_SEGMENT_BYTES = 255;
/**
 * Path of a file in an artifact: leaves room for the folder that it is unpacked in, where
 * paths end at 4,096 bytes.
 */
const MAX_PATH_BYTES = 1_024;

// Control characters, and characters with a meaning on Windows: drive, stream, separator.
const FORBIDDEN = /[\p{Cc}\\:]/u;

/** Throws an `ArtifactError` for a path that an artifact may not contain. */
function checkPath(path: string): void {
  const fault = faultOf(path);
  if (fault !== undefined) {
    throw new ArtifactError(`path ${quoted(path)} ${fault}`);
  }
}

function faultOf(path: string): string | undefined {
  if (path.startsWith("/")) {
    return "is absolute; paths in an artifact begin at its root";
  }
  const names = path.split("/");
  if (names.includes("..")) {
    return "leads out of the artifact";
  }
  if (names.includes("") || names.includes(".")) {
    return "has an empty or a superfluous part";
  }
  if (FORBIDDEN.test(path)) {
    return "has a backslash, a colon or a control character, which not every system takes";
  }
  if (!path.isWellFormed()) {
    return "is not valid Unicode";
  }
  if (names.some((name) => Buffer.byteLength(name) > MAX_PATH_SEGMENT_BYTES)) {
    return `has a part of more than ${MAX_PATH_SEGMENT_BYTES} bytes`;
  }
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) {
    return `is longer than ${MAX_PATH_BYTES} bytes`;
  }
  return undefined;
}

/**
 * Throws an `ArtifactError` when two of the paths could be one file on some system:
 * equal paths, paths that differ only in case or Unicode normalization, or a file
 * where another path has a folder.
 */
function checkTogether(paths: readonly string[]): void {
  const spellings = new Map<string, string>();
  const files = new Map<string, string>();
  for (const path of paths) {
    const earlier = files.get(folded(path));
    if (earlier === path) {
      throw new ArtifactError(`path ${quoted(path)} is there twice`);
    }
    if (earlier !== undefined) {
      throw colliding(earlier, path);
    }
    files.set(folded(path), path);
  }
  for (const path of paths) {
    for (let end = path.indexOf("/"); end > 0; end = path.indexOf("/", end + 1)) {
      const folder = path.slice(0, end);
      const key = folded(folder);
      const file = files.get(key);
      if (file !== undefined) {
        throw new ArtifactError(`${quoted(file)} is a file, and ${quoted(path)} lies in it`);
      }
      const earlier = spellings.get(key) ?? folder;
      if (earlier !== folder) {
        throw colliding(earlier, folder);
      }
      spellings.set(key, folder);
    }
  }
}

function colliding(first: string, second: string): ArtifactError {
  return new ArtifactError(
    `paths ${quoted(first)} and ${quoted(second)} differ only in case, and some systems have no room for both`,
  );
}

function folded(path: string): string {
  return path.normalize("NFC").toLowerCase();
}
