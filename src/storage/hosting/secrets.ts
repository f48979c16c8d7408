import type { Page, PageQuery } from "../accounts/page.ts";
import type { DeploymentKey } from "./deployment-key.ts";

export interface SealedSecret extends DeploymentKey {
  readonly name: string;
  readonly sealed: string;
}

/** Secrets of deployments, which come here sealed only. */
export interface SecretStorage {
  /** For the workers of a deployment, by name. */
  getSecrets(parameters: DeploymentKey): Promise<SealedSecret[]>;

  /** Of all deployments, for resealing after a rotation of keys; `after` is `next` of the page before. */
  listSealedSecrets(parameters: PageQuery): Promise<Page<SealedSecret>>;

  /** Replaces a sealed value, if it is still the one read. */
  replaceSealedSecret(
    parameters: DeploymentKey & {
      readonly name: string;
      readonly from: string;
      readonly to: string;
    },
  ): Promise<void>;
}
