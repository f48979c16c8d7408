/** Sets and removes secrets of a deployment without new code. */
import type { HostingStorage } from "../../hosting/hosting.ts";
import type { SecretStorage } from "../../hosting/secrets.ts";
import { record } from "../accounts/audit.ts";
import { announce } from "../accounts/changes.ts";
import { secretsSince, storeDeployment } from "../accounts/deployment-rows.ts";
import { findDeployment } from "../accounts/deployments.ts";
import { lockOrganization } from "../accounts/locks.ts";
import type { Operation } from "../operation.ts";
import { changeOfSecrets, secretDetails, storeSecrets, withheldDetail } from "./secrets.ts";

export function* updateSecrets(
  parameters: Parameters<HostingStorage["updateSecrets"]>[0],
): Operation<Awaited<ReturnType<SecretStorage["updateSecrets"]>>> {
  const { organizationId, deploymentId, name, nowMs } = parameters;
  yield* lockOrganization(organizationId);
  const before = yield* findDeployment({ organizationId, name });
  if (before === undefined || before.deploymentId !== deploymentId) {
    return { outcome: "not_found" };
  }
  if (parameters.version !== undefined && parameters.version !== before.version) {
    return { outcome: "version_conflict" };
  }
  const { changes: changesSecrets, tooMany } = yield* changeOfSecrets(before, parameters);
  if (tooMany) {
    return { outcome: "too_many_secrets" };
  }
  if (!changesSecrets) {
    return { outcome: "updated", deployment: before };
  }
  const version = before.version + 1;
  const { settings } = before;
  const { usesSecrets = false } = parameters;
  const deployment = {
    ...before,
    updatedAtMs: nowMs,
    version,
    secretsSince: secretsSince(before, { settings, version }, { usesSecrets, changesSecrets }),
    secretsVersion: version,
  };
  yield* storeDeployment(deployment);
  yield* storeSecrets(parameters, version);
  yield* record(parameters, organizationId, {
    action: "deployment.update_secrets",
    subjectId: deploymentId,
    subject: name,
    details: { ...secretDetails(parameters), ...(yield* withheldDetail(deployment)) },
  });
  yield* announce(nowMs, { kind: "deployment", id: deploymentId });
  return { outcome: "updated", deployment };
}
