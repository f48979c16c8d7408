/** The part of the hosting port for the secrets of deployments. */
import type { Deed } from "../accounts/deed.ts";
import type { DeploymentRecord } from "../accounts/organizations.ts";
import type { Page, PageQuery } from "../accounts/page.ts";
import type { DeploymentKey } from "./deployment-key.ts";

export interface SealedSecret extends DeploymentKey {
  readonly name: string;
  readonly sealed: string;
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
