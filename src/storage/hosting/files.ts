/** The part of the hosting port for artifact files: a registry of their blobs, per organization. */
import type { ArtifactFile } from "./revisions.ts";

type OfOrganization = { readonly organizationId: string };

/** Identifies the blob of a file. */
type BlobKey = OfOrganization & { readonly blobId: string };

/** What the files of an organization take. */
export interface StorageUse {
  /** Of all files, each once, with uploads that have begun. */
  readonly usedBytes: number;
  /** Of what no revision and no model has: it is deleted when its time is over. */
  readonly unusedBytes: number;
  /** Of files that versions of models have, each once. */
  readonly modelBytes: number;
  /** The deployments whose kept revisions take most, largest first. */
  readonly deployments: readonly {
    readonly name: string;
    readonly revisions: number;
    /** A file that several deployments have counts for each. */
    readonly bytes: number;
  }[];
}

/**
 * Files of artifacts. Each organization has its own, so that nobody learns what
 * others have. A file is kept while an artifact refers to it, and otherwise
 * until `keptUntilMs`: what a deploy has uploaded or found must still exist
 * when it creates the revision. All changes happen under the organization's
 * lock, so a file is either found by a new revision or swept, never both.
 */
export interface ArtifactFiles {
  /**
   * Returns the digests of missing files, each once. Files that exist are kept
   * at least until `keptUntilMs`.
   */
  findMissingFiles(
    parameters: OfOrganization & {
      readonly sha256: readonly string[];
      readonly keptUntilMs: number;
    },
  ): Promise<string[]>;

  /**
   * Registers a file before its bytes are written under the blob's id. `there`:
   * the file exists already, no upload is needed. `limit`: the organization's
   * files, including uploads, would exceed `maxBytes` in total.
   */
  registerFile(
    parameters: BlobKey &
      ArtifactFile & { readonly keptUntilMs: number; readonly maxBytes: number },
  ): Promise<{ readonly outcome: "registered" | "there" | "limit" }>;

  /**
   * Marks a file as written; the caller has checked its digest and size. When
   * another upload of the same file finished first, this blob is swept with the next sweep. `gone`:
   * the upload took so long that the blob was swept. A file that was registered
   * without its digest, as an empty text, brings it here.
   */
  finishFile(
    parameters: BlobKey & { readonly keptUntilMs: number; readonly sha256?: string },
  ): Promise<{ readonly outcome: "finished" | "gone" }>;

  /** Finds the blob of a file by its digest; undefined when the file is missing. */
  findFile(
    parameters: OfOrganization & { readonly sha256: string },
  ): Promise<{ readonly blobId: string } | undefined>;

  /**
   * Marks a failed upload for sweeping; it counts for nothing from now on, because a write that
   * fails leaves no bytes. A finished file stays.
   */
  abandonFile(parameters: BlobKey & { readonly nowMs: number }): Promise<void>;

  /** Lists an artifact's files with their blobs, each file once; with `sha256` only that one. */
  listArtifactFiles(
    parameters: OfOrganization & { readonly digest: string; readonly sha256?: string },
  ): Promise<(ArtifactFile & { readonly blobId: string })[]>;

  /**
   * Returns at most `limit` files of one organization that are unused and can
   * no longer be used; the list is empty when all of them were just taken into
   * use. Undefined when no organization has unused files. The caller deletes
   * the blobs, then forgets them. Files that are not forgotten by `againMs` are
   * returned again.
   */
  takeUnusedFiles(parameters: {
    readonly nowMs: number;
    readonly againMs: number;
    readonly limit: number;
  }): Promise<(OfOrganization & { readonly blobIds: string[] }) | undefined>;

  /** What the organization's files take, and at most `limit` deployments that they are of. */
  readStorageUse(parameters: OfOrganization & { readonly limit: number }): Promise<StorageUse>;

  /** Removes files from the registry after their bytes were deleted. */
  forgetFiles(parameters: OfOrganization & { readonly blobIds: readonly string[] }): Promise<void>;
}
