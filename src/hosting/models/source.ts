/**
 * The port of sources of models: where weights are fetched from. A source is pinned first, to what
 * cannot change, such as a commit; what is pinned is a source again, that means the same files.
 */
import { ArtifactError } from "../../artifacts/artifact-error.ts";
import type { IndexedFile } from "../../artifacts/index-file.ts";
import { createModelIndex } from "../../artifacts/model-index.ts";
import { MAX_PART_BYTES, PARTS_FOLDER, partPath } from "../../artifacts/parts.ts";
import { type Problem, problem } from "../../errors.ts";

/** What a source says of the content of a file. */
type FileProof =
  /** Its SHA-256, in hex. */
  | { readonly kind: "sha256"; readonly digest: string }
  /** Its id in Git: SHA-1 of a header and the content, in hex. */
  | { readonly kind: "git"; readonly digest: string }
  /**
   * A digest of where it is and of its entity tag. It tells one content from another, and proves
   * none: the source gives what has the tag, or nothing.
   */
  | { readonly kind: "etag"; readonly digest: string };

/** A file of a source. */
export interface SourceFile {
  readonly path: string;
  /** In bytes. */
  readonly size: number;
  readonly proof: FileProof;
}

/** The content of a file from some place on. */
export interface SourceContent {
  /** Where the chunks begin: 0 from a server that cannot begin elsewhere. */
  readonly start: number;
  /** Tells the content from what it was before; undefined where the server does not say. */
  readonly etag: string | undefined;
  /** Of the whole file, in bytes; undefined where the server does not say. */
  readonly size: number | undefined;
  readonly chunks: AsyncIterable<Uint8Array>;
}

export interface PinnedSource {
  /** The source as what it is now. */
  readonly pinned: string;
  /** A name for the model, from the source. */
  readonly name: string;
  /** At Hugging Face; empty for others. */
  readonly repository: string;
  readonly commit: string;
  readonly files: readonly SourceFile[];
  /** Opens a file at a place. Rejects with SOURCE_REFUSED or SOURCE_UNAVAILABLE. */
  open(file: SourceFile, start: number, signal: AbortSignal): Promise<SourceContent>;
}

export interface PinOptions {
  /** The name of the organization that asks. */
  readonly organization: string;
  /** For a source that asks who reads it; empty: none. */
  readonly token: string;
  readonly signal: AbortSignal;
}

export interface ModelSource {
  /** Whether this is a source of its kind, by how it begins. */
  takes(source: string): boolean;
  /** Rejects with REQUEST_INVALID, SOURCE_REFUSED or SOURCE_UNAVAILABLE. */
  pin(source: string, options: PinOptions): Promise<PinnedSource>;
}

/** The error for a source that will not do, however often it is tried. */
export function sourceRefused(message: string, cause?: unknown): Problem {
  return problem("SOURCE_REFUSED", message, { cause });
}

/** The error for a source that may do at another time. */
export function sourceUnavailable(message: string, cause?: unknown): Problem {
  return problem("SOURCE_UNAVAILABLE", `${message}: try again`, { cause, retryAfterMs: 5_000 });
}

/** A file of the index to come: a whole file, or one part of a large one. */
export interface PlannedFile {
  /** As in the index. */
  readonly path: string;
  /** Its first byte in the whole file. */
  readonly start: number;
  readonly size: number;
}

/** The files of the index that a file will be. */
export function plannedFiles({ path, size }: SourceFile): PlannedFile[] {
  if (size <= MAX_PART_BYTES) {
    return [{ path, start: 0, size }];
  }
  return Array.from({ length: Math.ceil(size / MAX_PART_BYTES) }, (_, number) => ({
    path: partPath(`${PARTS_FOLDER}${path}`, number),
    start: number * MAX_PART_BYTES,
    size: Math.min(MAX_PART_BYTES, size - number * MAX_PART_BYTES),
  }));
}

/** Any digest, to check all of an index but the digests. */
const NO_DIGEST = "0".repeat(64);

/** Pins a source by the first of the adapters that takes it, and checks its list of files. */
export async function pinSource(
  sources: readonly ModelSource[],
  source: string,
  options: PinOptions,
): Promise<PinnedSource> {
  const adapter = sources.find((each) => each.takes(source));
  if (adapter === undefined) {
    throw invalidSource(
      "is not hf://OWNER/NAME, s3://BUCKET/PREFIX or https://HOST/PATH#sha256=DIGEST",
    );
  }
  const pinned = await adapter.pin(source, options);
  if (pinned.files.length === 0) {
    throw sourceRefused("the source has no files");
  }
  const files = pinned.files
    .flatMap(plannedFiles)
    .map(({ path, size }): IndexedFile => ({ path, size, sha256: NO_DIGEST, executable: false }));
  try {
    createModelIndex(files);
  } catch (err) {
    throw err instanceof ArtifactError
      ? sourceRefused(`the source has what a model may not have: ${err.message}`, err)
      : err;
  }
  return pinned;
}

/** The error for a source that is not one. */
export function invalidSource(description: string): Problem {
  return problem("REQUEST_INVALID", `source ${description}`, {
    violations: [{ field: "source", description }],
  });
}

/** A model's name from the last part of a source. */
export function nameFrom(text: string): string {
  const words = text.toLowerCase().replace(/[^a-z0-9._-]+/g, "-");
  const name = words
    .replace(/[._-]*([._-])/g, "$1")
    .replace(/^[._-]+/, "")
    .slice(0, 63);
  return name.replace(/[._-]+$/, "") || "model";
}
