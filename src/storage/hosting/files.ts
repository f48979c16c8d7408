import type { ArtifactFile } from "./revisions.ts";

type OfOrganization = { readonly organizationId: string };

/** The file under its digest in its blob. */
type BlobKey = OfOrganization & { readonly blobId: string };

/**
 * Files of artifacts. Each organization has its own, so that nobody learns
 * what others have. A file is kept while an artifact has it, and otherwise
 * until `keptUntilMs`: what a deploy has uploaded or found must be there when
 * it makes the revision. All of it changes under the organization's lock, so a
 * file is either found by a new revision or swept, never both.
 */
export interface ArtifactFiles {
  /**
   * The digests that are not there, each once; those that are will be kept at
   * least until `keptUntilMs`.
   */
  findMissingFiles(
    parameters: OfOrganization & {
      readonly sha256: readonly string[];
      readonly keptUntilMs: number;
    },
  ): Promise<string[]>;

  /**
   * Notes a file before its bytes are written under the blob's id. `there`:
   * it need not be. `limit`: the files of the organization, uploads among them,
   * would be larger than `maxBytes` together.
   */
  registerFile(
    parameters: BlobKey &
      ArtifactFile & { readonly keptUntilMs: number; readonly maxBytes: number },
  ): Promise<{ readonly outcome: "registered" | "there" | "limit" }>;

  /**
   * The bytes are written and are what the digest and the size say. The
   * same file may have come by another upload first; this blob is then swept.
   * `gone`: it took so long that it has been swept.
   */
  finishFile(
    parameters: BlobKey & { readonly keptUntilMs: number },
  ): Promise<{ readonly outcome: "finished" | "gone" }>;

  /** An upload failed: what there is of it will be swept. A file that is finished stays. */
  abandonFile(parameters: BlobKey & { readonly nowMs: number }): Promise<void>;

  /** The files of an artifact and where their bytes are, each file once. */
  listArtifactFiles(
    parameters: OfOrganization & { readonly digest: string },
  ): Promise<(ArtifactFile & { readonly blobId: string })[]>;

  /**
   * Files of one organization that nothing has and nothing can get any more,
   * at most `limit`, and none where they were just taken into use; undefined
   * when there are none anywhere. The caller deletes the blobs, then forgets
   * them. What is not forgotten until `againMs` is given to the next one who
   * asks.
   */
  takeUnusedFiles(parameters: {
    readonly nowMs: number;
    readonly againMs: number;
    readonly limit: number;
  }): Promise<(OfOrganization & { readonly blobIds: string[] }) | undefined>;

  /** The bytes of these are gone. */
  forgetFiles(parameters: OfOrganization & { readonly blobIds: readonly string[] }): Promise<void>;
}
