/** The secrets of a deployment: their list, their change, and the confirmation of what has them. */
import type {
  ConfirmSecretsRequest,
  UpdateSecretsRequest,
} from "../../../gen/tessera/v1/deployment_pb.js";
import { mayUseSecrets } from "../../auth/grants.ts";
import { deploymentSecretContext, type KeyRing } from "../../auth/keys.ts";
import { type Problem, problem } from "../../errors.ts";
import { deed, type Member, type Sources } from "../../server/rpc/engine/caller.ts";
import type { DeploymentRecord, Organizations } from "../../storage/accounts/organizations.ts";
import type { SecretStorage } from "../../storage/hosting/secrets.ts";
import { refuse } from "../violations.ts";
import { checkEnvironment } from "./ceilings.ts";
import {
  deploymentNotFound,
  findDeployment,
  isName,
  noRevision,
  versionConflict,
} from "./refusals.ts";
import { faultsOfEnvironment } from "./settings.ts";

/** Secrets of a deployment. */
export const MAX_DEPLOYMENT_SECRETS = 100;

export interface SecretsOptions extends Sources {
  readonly accounts: Pick<Organizations, "findDeployment">;
  readonly hosting: Pick<SecretStorage, "getSecrets" | "updateSecrets">;
  readonly keys: KeyRing;
}

/**
 * The values, sealed. They are sealed for one deployment id: another deployment of the same name
 * could not open them.
 */
export function sealedSecrets(
  secrets: Readonly<Record<string, string>>,
  {
    keys,
    organizationId,
    deploymentId,
  }: { readonly keys: KeyRing; readonly organizationId: string; readonly deploymentId: string },
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(secrets).map(([name, value]) => {
      const context = deploymentSecretContext({ organizationId, deploymentId, name });
      return [name, keys.seal(value, context)] as const;
    }),
  );
}

/** The error for a deployment that would have too many secrets. */
export function tooManySecrets(name: string): Problem {
  return problem(
    "LIMIT_REACHED",
    `deployment ${name} would have more than ${MAX_DEPLOYMENT_SECRETS} secrets: remove some`,
  );
}

/**
 * Sets and removes secrets. Errors: DEPLOYMENT_NOT_FOUND, VERSION_CONFLICT, LIMIT_REACHED,
 * REQUEST_INVALID.
 */
export async function updateSecrets(
  { deployment: name, secrets, removeSecrets, version }: UpdateSecretsRequest,
  { principal, organizationId, by }: Member,
  options: SecretsOptions,
): Promise<DeploymentRecord> {
  const { accounts, hosting, keys } = options;
  refuse(faultsOfEnvironment("secrets", secrets));
  const before = await findDeployment(accounts, { organizationId }, name);
  await checkEnvironment(hosting, before, { env: undefined, secrets, removeSecrets });
  const { deploymentId } = before;
  const updated = await hosting.updateSecrets({
    ...deed(by, options),
    organizationId,
    deploymentId,
    name,
    secrets: sealedSecrets(secrets, { keys, organizationId, deploymentId }),
    removeSecrets: removeSecrets.filter((secret) => !(secret in secrets)),
    maxSecrets: MAX_DEPLOYMENT_SECRETS,
    usesSecrets: mayUseSecrets(principal, organizationId),
    ...(version !== 0 && { version }),
  });
  switch (updated.outcome) {
    case "updated":
      return updated.deployment;
    case "not_found":
      throw deploymentNotFound(name);
    case "version_conflict":
      throw versionConflict(name, version);
    case "too_many_secrets":
      throw tooManySecrets(name);
  }
}

/**
 * Confirms the target revision and the variables. Errors: ACCESS_DENIED, DEPLOYMENT_NOT_FOUND,
 * NO_REVISION, VERSION_CONFLICT.
 */
export async function confirmSecrets(
  { deployment: name, version }: ConfirmSecretsRequest,
  { principal, organizationId, by }: Member,
  options: Sources & { readonly hosting: Pick<SecretStorage, "confirmSecrets"> },
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
