/**
 * The part of the hosting port for models: weights by name, in versions.
 *
 * The index of a version and its files are kept where those of artifacts are: `getIndex` and
 * `listArtifactFiles` read them by the version's digest, and a file is kept while any version
 * refers to it.
 *
 * A version that is imported is fetched by one run at a time. A run claims it for a while and
 * renews the claim with each report. When its node dies, another run claims it, and goes on with
 * the files that were reported.
 */
import type { Deed } from "../accounts/deed.ts";
import type { Page, PageQuery } from "../accounts/page.ts";
import type { ArtifactFile, NewArtifact } from "./revisions.ts";

export type ModelState = "importing" | "ready" | "failed";

/** Identifies a version of a model. */
export interface ModelVersionKey {
  readonly organizationId: string;
  /** The model's name. */
  readonly model: string;
  /** Counted from 1. */
  readonly version: number;
}

export interface ModelVersionRecord extends ModelVersionKey {
  readonly state: ModelState;
  /** Undefined until it is ready. */
  readonly digest: string | undefined;
  readonly sizeBytes: number;
  readonly files: number;
  /** As the caller named it; empty for one that was pushed. */
  readonly source: string;
  /** At Hugging Face; empty for others. */
  readonly repository: string;
  readonly commit: string;
  readonly createdAtMs: number;
  readonly createdBy: string;
  readonly warnings: readonly string[];
  /** Why it failed; empty for others. */
  readonly reason: string;
  readonly bytesDone: number;
  readonly bytesPerSecond: number;
  /** The names of deployments whose kept revisions have it, sorted. */
  readonly deployments: readonly string[];
}

export interface ModelRecord {
  readonly name: string;
  readonly createdAtMs: number;
  readonly versionCount: number;
  /** Newest first. */
  readonly versions: readonly ModelVersionRecord[];
}

/** Bounds on models; a change that would exceed one has the outcome `limit`. */
interface ModelBounds {
  /** Models of the organization. */
  readonly maxModels: number;
  /** Versions of the model. */
  readonly maxVersions: number;
}

type OfModel = { readonly organizationId: string; readonly model: string };

/** A version with the claim of the run that imports it. */
type Claimed = ModelVersionKey & { readonly claim: string };

/** A file, or part of one, that an import has stored. */
export interface ImportedFile extends ArtifactFile {
  /** As in the index. */
  readonly path: string;
  /** The digest of the whole file, as its source tells it. */
  readonly origin: string;
}

/** An import to do. */
export interface ModelImport extends ModelVersionKey {
  /** The name of the organization. */
  readonly organization: string;
  readonly source: string;
  readonly pinned: string;
  readonly sealedToken: string | undefined;
}

export interface ModelStorage {
  /**
   * Makes an index of uploaded files the next version of a model. A version of the model with this
   * digest is returned as it is.
   */
  pushModel(
    parameters: Deed &
      OfModel &
      ModelBounds & {
        readonly artifact: NewArtifact;
        /** Files as they are on disk. */
        readonly files: number;
        readonly warnings: readonly string[];
      },
  ): Promise<
    | { readonly outcome: "pushed"; readonly version: ModelVersionRecord }
    | { readonly outcome: "files_missing" | "sizes_differ"; readonly files: readonly string[] }
    | { readonly outcome: "limit" }
  >;

  /**
   * Asks for an import. A version of the model that is pinned to the same is returned as it is;
   * one that has failed is imported again.
   */
  importModel(
    parameters: Deed &
      OfModel &
      ModelBounds &
      Pick<
        ModelVersionRecord,
        "source" | "repository" | "commit" | "sizeBytes" | "files" | "warnings"
      > & {
        /** The source as what it is now: the same text means the same files. */
        readonly pinned: string;
        readonly sealedToken: string | undefined;
        /** The secret that it is, such as `reader/HF_TOKEN`, for the audit log. */
        readonly tokenSecret?: string;
      },
  ): Promise<
    | { readonly outcome: "found"; readonly version: ModelVersionRecord }
    | { readonly outcome: "limit" }
  >;

  /** Lists models by name, each with its newest `versions` versions; `after` is a name. */
  listModels(
    parameters: PageQuery & { readonly organizationId: string; readonly versions: number },
  ): Promise<Page<ModelRecord>>;

  /** Reads a model with at most `versions` of its versions; undefined when it does not exist. */
  getModel(parameters: OfModel & { readonly versions: number }): Promise<ModelRecord | undefined>;

  /** Reads a version; undefined when it does not exist. */
  getModelVersion(parameters: ModelVersionKey): Promise<ModelVersionRecord | undefined>;

  /**
   * Deletes a version, or without one the model with all of them. `in_use`: revisions that are
   * kept have one of them.
   */
  deleteModel(
    parameters: Deed & OfModel & { readonly version?: number },
  ): Promise<
    | { readonly outcome: "deleted" | "not_found" }
    | { readonly outcome: "in_use"; readonly deployments: readonly string[] }
  >;

  /**
   * Claims an import for a run, of the organization that has the fewest under way the one that waits
   * longest; none `without` these organizations. Undefined when none waits.
   */
  takeImport(parameters: {
    readonly claim: string;
    readonly without: readonly string[];
    readonly nowMs: number;
    readonly ttlMs: number;
  }): Promise<ModelImport | undefined>;

  /**
   * Renews a claim, and records what was stored since the last report. Returns whether the run
   * still has the import: not after its claim went to another one, or the version was deleted.
   * With a `ttlMs` of 0 the next run may have it at once.
   */
  reportImport(
    parameters: Claimed & {
      readonly nowMs: number;
      readonly ttlMs: number;
      readonly bytesDone: number;
      readonly bytesPerSecond: number;
      readonly stored: readonly ImportedFile[];
    },
  ): Promise<boolean>;

  /** Lists what runs of this import have stored, sorted by path. */
  listImported(parameters: ModelVersionKey): Promise<ImportedFile[]>;

  /**
   * Finds what a ready version of the organization has of this origin, sorted by path: a file or
   * its parts, and as often as the version has it; empty without such a version.
   */
  findImported(parameters: {
    readonly organizationId: string;
    readonly origin: string;
  }): Promise<ImportedFile[]>;

  /** Makes an imported version ready. `lost`: another run has it, or it was deleted. */
  finishImport(
    parameters: Claimed & { readonly artifact: NewArtifact },
  ): Promise<{ readonly outcome: "finished" | "lost" | "files_missing" | "sizes_differ" }>;

  /** Ends an import that cannot succeed, with the reason for people. */
  failImport(parameters: Claimed & { readonly reason: string }): Promise<void>;
}
