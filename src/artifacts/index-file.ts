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
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { readManifest } from "../pool/check-manifest.ts";
import type { ServiceManifest } from "../protocol/manifest.ts";
import { version } from "../version.ts";
import { ArtifactError, quoted } from "./artifact-error.ts";
import { checkPath, checkTogether } from "./paths.ts";

export const INDEX_NAME = "tessera.json";
export const ENTRY_NAME = "service.js";

const FORMAT = 1;

/**
 * Files in an artifact: a service with its packages has hundreds, and one with more than this
 * is something other than a service.
 */
export const MAX_ARTIFACT_FILES = 20_000;
/** All files of an artifact together, which a node unpacks and keeps for each revision. */
export const MAX_ARTIFACT_BYTES = 1024 ** 3;
/**
 * One file of an artifact: it is uploaded as a whole, and again from its start when the
 * connection broke.
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

export interface ArtifactIndex {
  readonly format: typeof FORMAT;
  /** The major version of the SDK that it was built with, which is required to run it. */
  readonly tessera: string;
  /** The service's name. */
  readonly name: string;
  /** The file of the service's module. */
  readonly entry: typeof ENTRY_NAME;
  /** The platform of its native code, such as `linux-x64-glibc`; undefined when it has none. */
  readonly platform?: string;
  readonly service: ServiceManifest;
  /** Sorted by path. */
  readonly files: readonly IndexedFile[];
}

const SCHEMA = {
  type: "object",
  additionalProperties: false,
  required: ["format", "tessera", "name", "entry", "service", "files"],
  properties: {
    format: { const: FORMAT },
    tessera: { type: "string", pattern: "^[0-9]{1,9}$" },
    name: { type: "string" },
    entry: { const: ENTRY_NAME },
    platform: { type: "string", pattern: "^[a-z0-9-]{1,64}$" },
    service: { type: "object" },
    files: {
      type: "array",
      minItems: 1,
      items: {
        type: "object",
        additionalProperties: false,
        required: ["path", "size", "sha256", "executable"],
        properties: {
          path: { type: "string" },
          size: { type: "integer", minimum: 0 },
          sha256: { type: "string", pattern: "^[0-9a-f]{64}$" },
          executable: { type: "boolean" },
        },
      },
    },
  },
};

let compiled: ValidateFunction<ArtifactIndex> | undefined;

/** Compiled lazily, because most runs of the program read no index. */
function schemaCheck(): ValidateFunction<ArtifactIndex> {
  compiled ??= new Ajv2020({ logger: false }).compile<ArtifactIndex>(SCHEMA);
  return compiled;
}

/** Creates and checks the index of a service and its files. Throws an `ArtifactError`. */
export function createIndex(
  service: ServiceManifest,
  files: readonly IndexedFile[],
  platform: string | undefined,
): ArtifactIndex {
  const text = canonical({
    format: FORMAT,
    tessera: ownMajor(),
    name: service.name,
    entry: ENTRY_NAME,
    ...(platform !== undefined && { platform }),
    service,
    files: files.toSorted((a, b) => (a.path < b.path ? -1 : 1)),
  });
  return verifyIndex(text);
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
  const index = parse(text);
  checkVersions(index);
  const matches = schemaCheck();
  if (!matches(index)) {
    const [fault] = matches.errors ?? [];
    throw new ArtifactError(`${INDEX_NAME}${fault?.instancePath ?? ""} ${fault?.message}`);
  }
  checkFiles(index.files);
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
  if (Number.isSafeInteger(format) && format !== FORMAT) {
    throw new ArtifactError(
      `the artifact has format ${format}, and this version of tessera reads format ${FORMAT}; build it again with tessera ${version}`,
    );
  }
  if (typeof tessera === "string" && tessera !== ownMajor()) {
    throw new ArtifactError(
      `the artifact was built for version ${quoted(tessera)} of tessera, and this is ${version}; build it again with that`,
    );
  }
}

function checkFiles(files: readonly IndexedFile[]): void {
  if (files.length > MAX_ARTIFACT_FILES) {
    throw new ArtifactError(
      `the artifact has ${files.length} files; at most ${MAX_ARTIFACT_FILES} may be`,
    );
  }
  for (const { path, size } of files) {
    checkPath(path);
    if (size > MAX_ARTIFACT_FILE_BYTES) {
      throw new ArtifactError(
        `${quoted(path)} has ${size} bytes; a file may have at most ${MAX_ARTIFACT_FILE_BYTES}`,
      );
    }
  }
  const total = files.reduce((sum, { size }) => sum + size, 0);
  if (total > MAX_ARTIFACT_BYTES) {
    throw new ArtifactError(
      `the artifact has ${total} bytes; all its files together may have at most ${MAX_ARTIFACT_BYTES}`,
    );
  }
  checkTogether([INDEX_NAME, ...files.map(({ path }) => path)]);
  if (!files.some(({ path }) => path === ENTRY_NAME)) {
    throw new ArtifactError(`the artifact lacks ${ENTRY_NAME}, the service's code`);
  }
}

function canonical({ service, files, ...others }: ArtifactIndex): string {
  const sorted = (value: object): object =>
    Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  const ordered = files.toSorted((a, b) => (a.path < b.path ? -1 : 1)).map((file) => sorted(file));
  return JSON.stringify(sorted({ ...others, service, files: ordered }));
}

function ownMajor(): string {
  return version.split(".")[0] ?? "";
}
