/** The part of the hosting port for the secrets of deployments. */
import type { Deed } from "../accounts/deed.ts";
import type { DeploymentRecord } from "../accounts/organizations.ts";
import type { Page, PageQuery } from "../accounts/page.ts";
import type { DeploymentKey } from "./deployment-key.ts";

export interface SealedSecret extends DeploymentKey {
  readonly name: string;
  readonly sealed: string;
}

/** What is shown of a secret. */
export interface SecretRecord {
  readonly name: string;
  readonly setAtMs: number;
  readonly setBy: string;
  /** Whether workers of the target revision do not get it; see `getRevisionSecrets`. */
  readonly withheld: boolean;
}

/** Secrets to set and to remove. */
export interface SecretsUpdate {
  /** Sealed values to set, by name. */
  readonly secrets?: { readonly [name: string]: string };
  /** One that is set as well is set. */
  readonly removeSecrets?: readonly string[];
  /** Refused when the deployment would have more secrets. */
  readonly maxSecrets: number;
}

/** The secrets of a deployment as its workers get them, sorted by name. */
export interface RevisionSecrets {
  readonly given: readonly SealedSecret[];
  /** Names of the others. */
  readonly withheld: readonly string[];
}

/** Secrets of deployments; they arrive sealed. */
export interface SecretStorage {
  /** Returns all secrets of a deployment, sorted by name. */
  getSecrets(parameters: DeploymentKey): Promise<SealedSecret[]>;

  /**
   * Returns the secrets for the workers of a revision. It has all of them if
   * its code and the deployment's variables come from callers who may use the
   * secrets, or were confirmed by one. Otherwise it has only those that were
   * set by the same call as the code, or as the variables.
   */
  getRevisionSecrets(
    parameters: DeploymentKey & { readonly revision: number },
  ): Promise<RevisionSecrets>;

  /** Returns the secrets of a deployment without their values, sorted by name. */
  listSecrets(parameters: DeploymentKey): Promise<SecretRecord[]>;

  /**
   * Sets and removes secrets of a deployment; unknown names to remove are
   * ignored, and where nothing is left to do nothing changes. Secrets are sealed
   * for `deploymentId`: `not_found` also where the name belongs to another one by
   * now. A caller who may not use the secrets leaves a mark; see
   * `getRevisionSecrets`. `version`, if given, is the deployment's version that
   * the caller has seen.
   */
  updateSecrets(
    parameters: Deed &
      DeploymentKey &
      SecretsUpdate & {
        readonly name: string;
        readonly usesSecrets?: boolean;
        readonly version?: number;
      },
  ): Promise<
    | { readonly outcome: "updated"; readonly deployment: DeploymentRecord }
    | { readonly outcome: "not_found" | "version_conflict" | "too_many_secrets" }
  >;

  /**
   * Confirms that the code of the target revision and the variables may have
   * the deployment's secrets. `version` is the deployment's version that the
   * caller has seen; any other is a conflict.
   */
  confirmSecrets(
    parameters: Deed & {
      readonly organizationId: string;
      readonly name: string;
      readonly version: number;
    },
  ): Promise<
    | { readonly outcome: "confirmed"; readonly deployment: DeploymentRecord }
    | { readonly outcome: "not_found" | "no_revision" | "version_conflict" }
  >;

  /**
   * Lists the secrets of all deployments, for resealing after a key rotation;
   * `after` is `next` of the previous page.
   */
  listSealedSecrets(parameters: PageQuery): Promise<Page<SealedSecret>>;

  /** Replaces a sealed value if it still equals `from` (compare-and-swap). */
  replaceSealedSecret(
    parameters: DeploymentKey & {
      readonly name: string;
      readonly from: string;
      readonly to: string;
    },
  ): Promise<void>;
}
