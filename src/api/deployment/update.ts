/** The update of a deployment: authorization and settings, by the request's field mask. */
import type { HandlerContext } from "@connectrpc/connect";
import {
  DeploymentSchema,
  type UpdateDeploymentRequest,
} from "../../../gen/tessera/v1/deployment_pb.js";
import { mayUseSecrets, openableBy } from "../../auth/grants.ts";
import type { Ceilings } from "../../deployments/ceilings.ts";
import { gpuNeedOf } from "../../deployments/placement.ts";
import type { SandboxLevel } from "../../pool/sandbox/sandbox.ts";
import { deed, memberOf, type Sources } from "../../server/rpc/engine/caller.ts";
import type { DeploymentRecord, Organizations } from "../../storage/accounts/organizations.ts";
import type { HostingStorage } from "../../storage/hosting/hosting.ts";
import { changedFields } from "../mask.ts";
import { missing } from "../violations.ts";
import { checkCeilings, checkEnvironment, checkGpus, checkSandbox } from "./ceilings.ts";
import {
  deploymentNotFound,
  findDeployment,
  isName,
  notOpenable,
  versionConflict,
  workersContradict,
} from "./refusals.ts";
import { namedSettings, SETTING_PATHS } from "./settings.ts";

interface UpdateOptions extends Sources {
  readonly accounts: Organizations;
  readonly hosting: HostingStorage;
  readonly ceilings: Ceilings;
  /** What holds the workers of this node. Default: the permission model. */
  readonly sandbox?: SandboxLevel | undefined;
}

export const CHANGEABLE: readonly string[] = ["authorization", ...SETTING_PATHS];

/**
 * Changes what the mask names, and answers the deployment as it is then.
 * Errors: DEPLOYMENT_NOT_FOUND, VERSION_CONFLICT, ACCESS_DENIED for a caller
 * who may not open it to everybody, REQUEST_INVALID.
 */
export async function updateDeployment(
  { deployment: message = missing(), updateMask: mask }: UpdateDeploymentRequest,
  ctx: HandlerContext,
  options: UpdateOptions,
): Promise<DeploymentRecord> {
  const { accounts, hosting, ceilings, sandbox } = options;
  const { principal, organizationId, by } = memberOf(ctx);
  const { name, authorization, version } = message;
  const changed = changedFields(DeploymentSchema, { message, mask }, CHANGEABLE);
  const settings = namedSettings(message.settings, changed);
  checkCeilings(settings, ceilings);
  checkSandbox(settings, sandbox);
  await checkGpus(hosting, gpuNeedOf(settings, {}), {
    place: settings.place ?? "any",
    nowMs: options.now(),
  });
  if (settings.env !== undefined) {
    const before = await findDeployment(accounts, { organizationId }, name);
    await checkEnvironment(hosting, before, { env: settings.env });
  }
  const updated = isName(name)
    ? await accounts.updateDeployment({
        ...deed(by, options),
        organizationId,
        name,
        ...(changed.has("authorization") && { authorization }),
        openable: openableBy(principal),
        usesSecrets: mayUseSecrets(principal, organizationId),
        settings,
        ...(version !== 0 && { version }),
      })
    : ({ outcome: "not_found" } as const);
  switch (updated.outcome) {
    case "updated":
      return updated.deployment;
    case "not_found":
      throw deploymentNotFound(name);
    case "version_conflict":
      throw versionConflict(name, version);
    case "not_openable":
      throw notOpenable(name);
    case "workers_contradict":
      throw workersContradict();
  }
}
