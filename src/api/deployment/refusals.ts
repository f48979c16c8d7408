/** Errors that several methods of DeploymentService share. */
import { faultOfName } from "../../auth/names.ts";
import { type Problem, problem } from "../../errors.ts";
import type { Member } from "../../server/rpc/engine/caller.ts";
import type { DeploymentRecord, Organizations } from "../../storage/accounts/organizations.ts";
import { invalidField } from "../violations.ts";

/** Finds a deployment by its name. Throws DEPLOYMENT_NOT_FOUND. */
export async function findDeployment(
  accounts: Pick<Organizations, "findDeployment">,
  { organizationId }: Pick<Member, "organizationId">,
  name: string,
): Promise<DeploymentRecord> {
  const found = isName(name) ? await accounts.findDeployment({ organizationId, name }) : undefined;
  if (found === undefined) {
    throw deploymentNotFound(name);
  }
  return found;
}

export function isName(name: string): boolean {
  return faultOfName(name) === undefined;
}

export function deploymentNotFound(name: string): Problem {
  return problem("DEPLOYMENT_NOT_FOUND", `deployment ${JSON.stringify(name)} does not exist`);
}

export function noRevision(name: string): Problem {
  return problem("NO_REVISION", `nothing was deployed to ${name} yet: deploy a service first`);
}

/** The error for a change to a deployment that is not as the caller has read it. */
export function versionConflict(name: string, version: number): Problem {
  return problem(
    "VERSION_CONFLICT",
    `deployment ${name} is not at version ${version} any more: read it again`,
  );
}

export function tooManyDeployments(organization: string, limit: number): Problem {
  return problem(
    "LIMIT_REACHED",
    `organization ${organization} has ${limit} deployments, which is what the operator of this platform allows (tessera start --max-deployments): delete some first`,
  );
}

/** The error for a token that would open to everyone a deployment that it may not call itself. */
export function notOpenable(name: string): Problem {
  return problem(
    "ACCESS_DENIED",
    `deployment ${name} asks its callers for a token, and this one may not call it: to switch that off, use a token that has protected endpoint access for ${name} as well, or have a person who is signed in do it`,
    // Names the field: other denials have the same reason, but here the rest of the request is allowed.
    { metadata: { field: "authorization" } },
  );
}

export function workersContradict(): Problem {
  return invalidField(
    "settings.min_workers",
    "would be more than max_workers: set both, so that they fit together",
  );
}
