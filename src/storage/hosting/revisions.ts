import type { Deed } from "../accounts/deed.ts";
import type {
  DeploymentRecord,
  DesiredState,
  Openable,
  SettingsUpdate,
} from "../accounts/organizations.ts";
import type { Page, PageQuery } from "../accounts/page.ts";

export interface EndpointSummary {
  readonly name: string;
  readonly kind: "api" | "task";
}

/** An artifact, as its index describes it. The caller has verified the index. */
export interface NewArtifact {
  /** SHA-256 of the index, in hex. */
  readonly digest: string;
  /** The text of the index. */
  readonly index: string;
  readonly endpoints: readonly EndpointSummary[];
  /** What the files should be; a digest may come several times. */
  readonly files: readonly ArtifactFile[];
}

export interface ArtifactFile {
  /** In hex. */
  readonly sha256: string;
  readonly sizeBytes: number;
}

export interface RevisionRecord {
  /** From 1. */
  readonly revision: number;
  readonly digest: string;
  readonly rolledBackTo: number | undefined;
  readonly createdAtMs: number;
  readonly createdBy: string;
  readonly files: number;
  readonly sizeBytes: number;
  readonly endpoints: readonly EndpointSummary[];
}

/** What a node needs to know of a deployment. */
export interface DesiredDeployment extends DeploymentRecord {
  /** Of the artifact of the target revision. */
  readonly digest: string | undefined;
}

type NamedDeployment = { readonly organizationId: string; readonly name: string };

interface NewRevision {
  readonly outcome: "created";
  readonly deployment: DeploymentRecord;
  readonly revision: number;
}

export interface Revisions {
  /**
   * Makes an artifact the next revision of a deployment and its target, and the
   * deployment, where there is none of this name. Whether it is running or
   * stopped does not change.
   *
   * `deploymentId` is what the caller knows the deployment by, or draws for a
   * new one; secrets are sealed for it. `conflict` says that it is another's:
   * of the deployment that has been made under this name in the meantime
   * (`deploymentId`), or of one that has been deleted (undefined).
   */
  createRevision(
    parameters: Deed &
      NamedDeployment & {
        readonly deploymentId: string;
        readonly artifact: NewArtifact;
        /** Undefined stays; false in a new deployment. */
        readonly authorization?: boolean;
        readonly openable?: Openable;
        readonly settings?: SettingsUpdate;
        /** Sealed values to set, by name. */
        readonly secrets?: { readonly [name: string]: string };
        readonly removeSecrets?: readonly string[];
        /** Refuse when the organization has so many deployments. */
        readonly limit: number;
        /** Refuse when the deployment would have more. */
        readonly maxSecrets: number;
        /** The newest revisions that stay; what nodes serve now stays too. */
        readonly keptRevisions: number;
      },
  ): Promise<
    | NewRevision
    | { readonly outcome: "conflict"; readonly deploymentId: string | undefined }
    /** Their digests, each once. */
    | { readonly outcome: "files_missing"; readonly files: readonly string[] }
    /** Files whose size is another than the index says. */
    | { readonly outcome: "sizes_differ"; readonly files: readonly string[] }
    | { readonly outcome: "limit" | "too_many_secrets" | "workers_contradict" | "not_openable" }
  >;

  /**
   * Makes the artifact of an earlier revision the next revision. Without
   * `revision`: of the one before the target.
   */
  rollBack(
    parameters: Deed &
      NamedDeployment & { readonly revision?: number; readonly keptRevisions: number },
  ): Promise<NewRevision | { readonly outcome: "not_found" | "revision_not_found" }>;

  /** Starts or stops a deployment. One that has no revision cannot be started. */
  setDesiredState(
    parameters: Deed & NamedDeployment & { readonly desiredState: DesiredState },
  ): Promise<
    | { readonly outcome: "changed"; readonly deployment: DeploymentRecord }
    | { readonly outcome: "not_found" | "no_revision" }
  >;

  /** Newest first; `after` is a revision. */
  listRevisions(
    parameters: PageQuery & { readonly organizationId: string; readonly deploymentId: string },
  ): Promise<Page<RevisionRecord>>;

  /** The text of an artifact's index; undefined when no revision has the artifact. */
  getIndex(parameters: {
    readonly organizationId: string;
    readonly digest: string;
  }): Promise<string | undefined>;

  /** A deployment by its id alone, as changes name it. */
  getDesired(parameters: { readonly deploymentId: string }): Promise<DesiredDeployment | undefined>;

  /** All deployments of all organizations; `after` is a deployment's id. */
  listDesired(parameters: PageQuery): Promise<Page<DesiredDeployment>>;
}
