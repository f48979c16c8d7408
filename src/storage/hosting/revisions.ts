/**
 * The part of the hosting port for revisions: artifacts, roll-back, and the
 * desired deployments that nodes read.
 */

import type { Deed } from "../accounts/deed.ts";
import type { DeploymentRecord, DesiredState, Openable } from "../accounts/organizations.ts";
import type { Page, PageQuery } from "../accounts/page.ts";
import type { MachineLabels, SettingsUpdate, WorkerPlace } from "../deployment-settings.ts";
import type { ManifestFacts } from "./manifests.ts";
import type { DeclaredSchedule } from "./schedules.ts";
import type { SecretsUpdate } from "./secrets.ts";

export interface EndpointSummary {
  readonly name: string;
  /** The name of a server, which is mounted, is its path. */
  readonly kind: "api" | "task" | "server";
  /** What its code says of the machines that run it; absent where it says nothing. */
  readonly requires?: MachineLabels;
  readonly place?: WorkerPlace;
  /** Its limits by key, the rate such as `10/min`; absent where it has none. */
  readonly byKey?: {
    readonly concurrency?: number | undefined;
    readonly rate?: string;
    readonly fair?: "seconds";
  };
}

/** An artifact, as its index describes it. The caller has verified the index. */
export interface NewArtifact {
  /** SHA-256 of the index, in hex. */
  readonly digest: string;
  /** The text of the index. */
  readonly index: string;
  readonly endpoints: readonly EndpointSummary[];
  /** The files that it consists of; a digest may occur several times. */
  readonly files: readonly ArtifactFile[];
  /** The digests of the versions of models that it has. Default: none. */
  readonly models?: readonly string[];
}

export interface ArtifactFile {
  /** In hex. */
  readonly sha256: string;
  readonly sizeBytes: number;
}

/** Where the code of a revision was in git, as its author's machine told it. */
export interface RevisionSource {
  /** In hex. */
  readonly commit: string;
  /** Empty: none was checked out. */
  readonly branch: string;
  /** The first line of the commit's message. */
  readonly message: string;
  /** Whether files had changes that were not committed. */
  readonly dirty: boolean;
}

export interface RevisionRecord {
  /** Counted from 1. */
  readonly revision: number;
  readonly digest: string;
  readonly rolledBackTo: number | undefined;
  readonly createdAtMs: number;
  readonly createdBy: string;
  readonly files: number;
  readonly sizeBytes: number;
  readonly endpoints: readonly EndpointSummary[];
  /** Who confirmed that its code may have the deployment's secrets; undefined: nobody. */
  readonly secretsConfirmed: SecretsConfirmation | undefined;
  readonly source: RevisionSource | undefined;
  /** When a node first served it; undefined: none has. */
  readonly servedAtMs: number | undefined;
}

export interface SecretsConfirmation {
  readonly by: string;
  readonly atMs: number;
}

/** What a node needs to know about a deployment to run it. */
export interface DesiredDeployment extends DeploymentRecord {
  /** Digest of the target revision's artifact. */
  readonly digest: string | undefined;
  /** Whether the code of the target revision may have the secrets; see `getRevisionSecrets`. */
  readonly secretsConfirmed: boolean;
  /** What the stored manifest holds for; undefined: nothing is stored. */
  readonly manifest?: ManifestFacts | undefined;
}

type NamedDeployment = { readonly organizationId: string; readonly name: string };

type NamedEndpoint = NamedDeployment & { readonly endpoint: string };

/** The deployment as it is now, also where the endpoint was paused, or was not, before. */
type ChangedPause = { readonly outcome: "changed"; readonly deployment: DeploymentRecord };

interface NewRevision {
  readonly outcome: "created";
  readonly deployment: DeploymentRecord;
  readonly revision: number;
}

export interface Revisions {
  /**
   * Creates the next revision of a deployment from an artifact and makes it the
   * target. Creates the deployment when none has this name. Its desired state
   * (running or stopped) does not change. An artifact from a caller who may not
   * use the secrets is confirmed only if a revision of the same one is.
   *
   * `deploymentId` is the id that the caller knows, or a fresh one for a new
   * deployment; secrets are sealed for it. `conflict`: the name now belongs to
   * another deployment, created in the meantime (`deploymentId`), or the id
   * belongs to a deleted one (undefined).
   */
  createRevision(
    parameters: Deed &
      NamedDeployment &
      SecretsUpdate & {
        readonly deploymentId: string;
        readonly artifact: NewArtifact;
        /** Default: not told. A roll-back has that of the revision that it restores. */
        readonly source?: RevisionSource;
        /** Undefined: stays as it is, and false for a new deployment. */
        readonly authorization?: boolean;
        readonly openable?: Openable;
        /** Whether the caller may use the deployment's secrets. Default: they may not. */
        readonly usesSecrets?: boolean;
        readonly settings?: SettingsUpdate;
        /** All that are declared from now on. Default: those of before. */
        readonly schedules?: readonly DeclaredSchedule[];
        /** Refused when the deployment would have more schedules. */
        readonly maxSchedules?: number;
        /** Refused when the organization has this many deployments. */
        readonly limit: number;
        /**
         * How many of the newest revisions are kept; revisions that nodes serve now are
         * kept too.
         */
        readonly keptRevisions: number;
      },
  ): Promise<
    | NewRevision
    | { readonly outcome: "conflict"; readonly deploymentId: string | undefined }
    /** `files` are the digests, each once. */
    | { readonly outcome: "files_missing"; readonly files: readonly string[] }
    /** Files whose size differs from the index. */
    | { readonly outcome: "sizes_differ"; readonly files: readonly string[] }
    /** Models of the artifact that the organization does not have, or not ready, by their digests. */
    | { readonly outcome: "models_missing"; readonly models: readonly string[] }
    | {
        readonly outcome:
          | "limit"
          | "too_many_secrets"
          | "too_many_schedules"
          | "workers_contradict"
          | "not_openable";
      }
  >;

  /**
   * Creates the next revision from the artifact of an earlier one. Default: the
   * one before the target. For every caller, it is confirmed only if a revision of
   * the same artifact is.
   */
  rollBack(
    parameters: Deed &
      NamedDeployment & { readonly revision?: number; readonly keptRevisions: number },
  ): Promise<NewRevision | { readonly outcome: "not_found" | "revision_not_found" }>;

  /** Starts or stops a deployment. A deployment without a revision cannot be started. */
  setDesiredState(
    parameters: Deed & NamedDeployment & { readonly desiredState: DesiredState },
  ): Promise<
    | { readonly outcome: "changed"; readonly deployment: DeploymentRecord }
    | { readonly outcome: "not_found" | "no_revision" }
  >;

  /**
   * Pauses a task endpoint: nothing starts that was not claimed before, on whichever node, while
   * submits are taken as before. `limit`: when the deployment has that many.
   */
  pauseEndpoint(
    parameters: Deed & NamedEndpoint & { readonly limit: number },
  ): Promise<ChangedPause | { readonly outcome: "not_found" | "limit" }>;

  /** Resumes an endpoint, whether or not the newest revision has it. */
  resumeEndpoint(
    parameters: Deed & NamedEndpoint,
  ): Promise<ChangedPause | { readonly outcome: "not_found" }>;

  /** Lists revisions, newest first; `after` is a revision. */
  listRevisions(
    parameters: PageQuery & { readonly organizationId: string; readonly deploymentId: string },
  ): Promise<Page<RevisionRecord>>;

  /** Returns the text of an artifact's index; undefined when no revision uses the artifact. */
  getIndex(parameters: {
    readonly organizationId: string;
    readonly digest: string;
  }): Promise<string | undefined>;

  /** Finds a deployment by its id alone, as change events name it. */
  getHosted(parameters: { readonly deploymentId: string }): Promise<DesiredDeployment | undefined>;

  /** Lists all deployments of all organizations; `after` is a deployment's id. */
  listHosted(parameters: PageQuery): Promise<Page<DesiredDeployment>>;
}
