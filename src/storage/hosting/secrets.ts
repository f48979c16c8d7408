/** The part of the hosting port for the secrets of deployments. */
import type { Page, PageQuery } from "../accounts/page.ts";
import type { DeploymentKey } from "./deployment-key.ts";

export interface SealedSecret extends DeploymentKey {
  readonly name: string;
  readonly sealed: string;
}

/** Secrets of deployments; they arrive sealed. */
export interface SecretStorage {
  /** Returns the secrets for a deployment's workers, sorted by name. */
  getSecrets(parameters: DeploymentKey): Promise<SealedSecret[]>;

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
