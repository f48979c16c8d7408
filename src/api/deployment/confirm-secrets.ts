/** The confirmation that what others have deployed may have a deployment's secrets. */
import type { ConfirmSecretsRequest } from "../../../gen/tessera/v1/deployment_pb.js";
import { mayUseSecrets } from "../../auth/grants.ts";
import { problem } from "../../errors.ts";
import { deed, type Member, type Sources } from "../../server/rpc/engine/caller.ts";
import type { DeploymentRecord } from "../../storage/accounts/organizations.ts";
import type { SecretStorage } from "../../storage/hosting/secrets.ts";
import { deploymentNotFound, isName, noRevision, versionConflict } from "./refusals.ts";

interface ConfirmSecretsOptions extends Sources {
  readonly hosting: Pick<SecretStorage, "confirmSecrets">;
}

/**
 * Confirms the target revision and the variables. Errors: ACCESS_DENIED, DEPLOYMENT_NOT_FOUND,
 * NO_REVISION, VERSION_CONFLICT.
 */
export async function confirmSecrets(
  { deployment: name, version }: ConfirmSecretsRequest,
  { principal, organizationId, by }: Member,
  options: ConfirmSecretsOptions,
): Promise<DeploymentRecord> {
  if (!mayUseSecrets(principal, organizationId)) {
    throw problem(
      "ACCESS_DENIED",
      "this asks for somebody who may use the secrets of deployments: an admin, or a token of the organization",
    );
  }
  const confirmed = isName(name)
    ? await options.hosting.confirmSecrets({
        ...deed(by, options),
        organizationId,
        name,
        version,
      })
    : ({ outcome: "not_found" } as const);
  switch (confirmed.outcome) {
    case "confirmed":
      return confirmed.deployment;
    case "not_found":
      throw deploymentNotFound(name);
    case "no_revision":
      throw noRevision(name);
    case "version_conflict":
      throw versionConflict(name, version);
  }
}
