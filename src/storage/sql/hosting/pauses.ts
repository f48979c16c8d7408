/** Pauses task endpoints, and resumes them. What claims and submits ask is in both adapters. */
import type { AuditAction } from "../../accounts/audit.ts";
import type { DeploymentRecord } from "../../accounts/organizations.ts";
import type { HostingStorage } from "../../hosting/hosting.ts";
import type { Revisions } from "../../hosting/revisions.ts";
import { record } from "../accounts/audit.ts";
import { announce } from "../accounts/changes.ts";
import { storeDeployment } from "../accounts/deployment-rows.ts";
import { findDeployment } from "../accounts/deployments.ts";
import { lockOrganization } from "../accounts/locks.ts";
import { type Operation, query } from "../operation.ts";

/** SQL: whether nobody claims tasks of an endpoint; the values are SQL for whose they are. */
export function isPaused(deploymentId: string, endpoint: string): string {
  return `EXISTS (SELECT 1 FROM paused_endpoints AS paused
    WHERE paused.deployment_id = ${deploymentId} AND paused.endpoint = ${endpoint})`;
}

export function* pauseEndpoint(
  parameters: Parameters<HostingStorage["pauseEndpoint"]>[0],
): Operation<Awaited<ReturnType<Revisions["pauseEndpoint"]>>> {
  const { organizationId, name, endpoint, nowMs, by, limit } = parameters;
  yield* lockOrganization(organizationId);
  const before = yield* findDeployment({ organizationId, name });
  if (before === undefined) {
    return { outcome: "not_found" };
  }
  const { deploymentId, pausedEndpoints: paused } = before;
  if (paused.some((one) => one.endpoint === endpoint)) {
    return { outcome: "changed", deployment: before };
  }
  if (paused.length >= limit) {
    return { outcome: "limit" };
  }
  yield* query(
    `INSERT INTO paused_endpoints (organization_id, deployment_id, endpoint, paused_at_ms, paused_by)
     VALUES (?, ?, ?, ?, ?)`,
    ...[organizationId, deploymentId, endpoint, nowMs, by.name],
  );
  return yield* changed(parameters, before, "deployment.pause_endpoint");
}

export function* resumeEndpoint(
  parameters: Parameters<HostingStorage["resumeEndpoint"]>[0],
): Operation<Awaited<ReturnType<Revisions["resumeEndpoint"]>>> {
  const { organizationId, name, endpoint } = parameters;
  yield* lockOrganization(organizationId);
  const before = yield* findDeployment({ organizationId, name });
  if (before === undefined) {
    return { outcome: "not_found" };
  }
  const resumed = yield* query(
    "DELETE FROM paused_endpoints WHERE deployment_id = ? AND endpoint = ? RETURNING endpoint",
    ...[before.deploymentId, endpoint],
  );
  return resumed.length === 0
    ? { outcome: "changed", deployment: before }
    : yield* changed(parameters, before, "deployment.resume_endpoint");
}

/** Counts the change, so that nodes take what they read before for older, and tells of it. */
function* changed(
  parameters: Parameters<HostingStorage["resumeEndpoint"]>[0],
  before: DeploymentRecord,
  action: AuditAction,
): Operation<{ readonly outcome: "changed"; readonly deployment: DeploymentRecord }> {
  const { organizationId, name, endpoint, nowMs } = parameters;
  const { deploymentId, version } = before;
  yield* storeDeployment({ ...before, updatedAtMs: nowMs, version: version + 1 });
  const details = { endpoint };
  yield* record(parameters, organizationId, {
    ...{ action, subjectId: deploymentId, subject: name, details },
  });
  yield* announce(nowMs, { kind: "deployment", id: deploymentId });
  const deployment = yield* findDeployment({ organizationId, name });
  return { outcome: "changed", deployment: deployment ?? before };
}
