/** Confirms that what was changed by callers who may not use a deployment's secrets may have them. */
import type { HostingStorage } from "../../hosting/hosting.ts";
import type { SecretStorage } from "../../hosting/secrets.ts";
import { record } from "../accounts/audit.ts";
import { announce } from "../accounts/changes.ts";
import { storeDeployment } from "../accounts/deployment-rows.ts";
import { findDeployment } from "../accounts/deployments.ts";
import { lockOrganization } from "../accounts/locks.ts";
import { type Operation, query } from "../operation.ts";
import { secretNamesOf } from "./secrets.ts";

export function* confirmSecrets(
  parameters: Parameters<HostingStorage["confirmSecrets"]>[0],
): Operation<Awaited<ReturnType<SecretStorage["confirmSecrets"]>>> {
  const { organizationId, name, nowMs, by } = parameters;
  yield* lockOrganization(organizationId);
  const before = yield* findDeployment({ organizationId, name });
  if (before === undefined) {
    return { outcome: "not_found" };
  }
  const { deploymentId, targetRevision } = before;
  if (targetRevision === undefined) {
    return { outcome: "no_revision" };
  }
  if (parameters.version !== before.version) {
    return { outcome: "version_conflict" };
  }
  const names = (yield* secretNamesOf(organizationId, [deploymentId])).get(deploymentId);
  const changed = yield* query<{ digest: string }>(
    `UPDATE revisions SET secrets_confirmed_by = ?, secrets_confirmed_at_ms = ?
     WHERE organization_id = ? AND deployment_id = ? AND revision = ?
       AND secrets_confirmed_by IS NULL RETURNING digest`,
    by.name,
    nowMs,
    organizationId,
    deploymentId,
    targetRevision,
  );
  if (changed.length === 0 && before.secretsSince === 0) {
    return { outcome: "confirmed", deployment: before };
  }
  const version = before.version + 1;
  const deployment = { ...before, updatedAtMs: nowMs, version, secretsSince: 0 };
  yield* storeDeployment(deployment);
  const given = names?.withheld ?? [];
  yield* record(parameters, organizationId, {
    action: "deployment.confirm_secrets",
    subjectId: deploymentId,
    subject: name,
    details: {
      revision: String(targetRevision),
      ...(changed[0] && { digest: changed[0].digest }),
      ...(given.length > 0 && { secrets: given.join(" ") }),
    },
  });
  yield* announce(nowMs, { kind: "deployment", id: deploymentId });
  return { outcome: "confirmed", deployment };
}
