/** Creates, reads, changes and deletes deployments. */
import type { Accounts } from "../../accounts/accounts.ts";
import type { DeploymentRecord, Organizations } from "../../accounts/organizations.ts";
import type { Page } from "../../accounts/page.ts";
import { changedSettings } from "../../deployment-settings.ts";
import { type Operation, query } from "../operation.ts";
import { record } from "./audit.ts";
import { announce } from "./changes.ts";
import {
  countDeployments,
  type DeploymentRow,
  insertDeployment,
  newDeployment,
  opensWrongly,
  SELECT_DEPLOYMENTS,
  secretsSince,
  storeDeployment,
  toDeployment,
} from "./deployment-rows.ts";
import { keepNames } from "./kept-names.ts";
import { lockOrganization } from "./locks.ts";
import { toPage } from "./rows.ts";

export function* createDeployment(
  parameters: Parameters<Accounts["createDeployment"]>[0],
): Operation<Awaited<ReturnType<Organizations["createDeployment"]>>> {
  const { organizationId, deploymentId, name, authorization, nowMs } = parameters;
  const organization = yield* lockOrganization(organizationId);
  if (organization === undefined) {
    throw new Error(`a deployment was created in organization ${organizationId}, which is gone`);
  }
  if (yield* findDeployment({ organizationId, name })) {
    return { outcome: "name_taken" };
  }
  if ((yield* countDeployments(organizationId)) >= parameters.limit) {
    return { outcome: "limit" };
  }
  const deployment = newDeployment({ ...parameters, organization: organization.name });
  yield* insertDeployment(deployment);
  yield* record(parameters, organizationId, {
    action: "deployment.create",
    subjectId: deploymentId,
    subject: name,
    details: { authorization: String(authorization) },
  });
  yield* announce(nowMs, { kind: "deployment", id: deploymentId });
  return { outcome: "created", deployment };
}

export function* findDeployment(
  parameters: Parameters<Accounts["findDeployment"]>[0],
): Operation<DeploymentRecord | undefined> {
  const [organization, value] =
    "organizationId" in parameters
      ? ["?", parameters.organizationId]
      : ["(SELECT organization_id FROM organizations WHERE name = ?)", parameters.organization];
  const [row] = yield* query<DeploymentRow>(
    `${SELECT_DEPLOYMENTS} WHERE d.organization_id = ${organization} AND d.name = ?`,
    value,
    parameters.name,
  );
  return row && toDeployment(row);
}

export function* listDeployments({
  organizationId,
  limit,
  after = "",
}: Parameters<Accounts["listDeployments"]>[0]): Operation<Page<DeploymentRecord>> {
  const rows = yield* query<DeploymentRow>(
    `${SELECT_DEPLOYMENTS} WHERE d.organization_id = ? AND d.name > ? ORDER BY d.name LIMIT ?`,
    organizationId,
    after,
    limit + 1,
  );
  return toPage(rows.map(toDeployment), limit, ({ name }) => name);
}

export function* updateDeployment(
  parameters: Parameters<Accounts["updateDeployment"]>[0],
): Operation<Awaited<ReturnType<Organizations["updateDeployment"]>>> {
  const { organizationId, name, settings: update = {}, nowMs } = parameters;
  yield* lockOrganization(organizationId);
  const before = yield* findDeployment({ organizationId, name });
  if (before === undefined) {
    return { outcome: "not_found" };
  }
  if (parameters.version !== undefined && parameters.version !== before.version) {
    return { outcome: "version_conflict" };
  }
  if (opensWrongly(before, parameters)) {
    return { outcome: "not_openable" };
  }
  const { deploymentId } = before;
  const { authorization = before.authorization } = parameters;
  const settings = { ...before.settings, ...update };
  if (settings.minWorkers > settings.maxWorkers) {
    return { outcome: "workers_contradict" };
  }
  const version = before.version + 1;
  const deployment = {
    ...before,
    authorization,
    settings,
    updatedAtMs: nowMs,
    version,
    secretsSince: secretsSince(before, { settings, version }, parameters),
  };
  yield* storeDeployment(deployment);
  yield* record(parameters, organizationId, {
    action: "deployment.update",
    subjectId: deploymentId,
    subject: name,
    details: {
      ...changedSettings(before.settings, deployment.settings),
      authorization: String(authorization),
    },
  });
  yield* announce(nowMs, { kind: "deployment", id: deploymentId });
  return { outcome: "updated", deployment };
}

/**
 * Deletes a deployment and removes it from tokens that name it. A token without
 * another deployment then opens nothing, even when a new deployment gets the
 * same name. The deployment's other data is deleted later; see
 * `hosting/hosting.ts`.
 *
 * The count may miss a task that is being submitted right now: that task is
 * lost as in a forced deletion.
 */
export function* deleteDeployment(
  parameters: Parameters<Accounts["deleteDeployment"]>[0],
): Operation<Awaited<ReturnType<Organizations["deleteDeployment"]>>> {
  const { organizationId, name, force = false, elsewhere, nowMs } = parameters;
  yield* lockOrganization(organizationId);
  const found = yield* findDeployment({ organizationId, name });
  if (found === undefined) {
    return { outcome: "not_found" };
  }
  const { deploymentId } = found;
  const here = yield* countLiveTasks(deploymentId);
  const queued = here.queued + (elsewhere?.queued ?? 0);
  const running = here.running + (elsewhere?.running ?? 0);
  if (!force && queued + running > 0) {
    return { outcome: "has_tasks", queued, running };
  }
  const tables = ["deployments", "token_deployments", "deployment_secrets"];
  for (const table of [...tables, "webhooks", "schedules", "paused_endpoints"]) {
    yield* query(
      `DELETE FROM ${table} WHERE organization_id = ? AND deployment_id = ?`,
      organizationId,
      deploymentId,
    );
  }
  yield* query("DELETE FROM key_turns WHERE deployment_id = ?", deploymentId);
  yield* query(
    `INSERT INTO deleted_deployments (organization_id, deployment_id, deleted_at_ms, look_after_ms)
     VALUES (?, ?, ?, ?)`,
    organizationId,
    deploymentId,
    nowMs,
    nowMs,
  );
  const kept = { id: deploymentId, kind: "deployment", name };
  yield* keepNames(organizationId, [kept], nowMs);
  yield* record(parameters, organizationId, {
    action: "deployment.delete",
    subjectId: deploymentId,
    subject: name,
    ...(force && { details: { queued: String(queued), running: String(running) } }),
  });
  yield* announce(nowMs, { kind: "deployment", id: deploymentId });
  return { outcome: "deleted", deploymentId };
}

/** Counts live tasks by the indexes that claims use. Statuses 0 and 1 are queued, 2 is running. */
function* countLiveTasks(
  deploymentId: string,
): Operation<{ readonly queued: number; readonly running: number }> {
  const counts: number[] = [];
  for (const status of [0, 1, 2]) {
    const [row] = yield* query<{ count: number }>(
      `SELECT count(*) AS count FROM live_tasks WHERE deployment_id = ? AND status = ${status}`,
      deploymentId,
    );
    counts.push(row?.count ?? 0);
  }
  const [scheduled = 0, ready = 0, running = 0] = counts;
  return { queued: scheduled + ready, running };
}
