/** Deletes the remains of deleted deployments, and nodes that died. */
import type { DeploymentKey } from "../../hosting/deployment-key.ts";
import type { HostingStorage } from "../../hosting/hosting.ts";
import { lockOrganization } from "../accounts/locks.ts";
import { type Operation, placeholders, query } from "../operation.ts";
import { dropArtifacts } from "./artifacts.ts";

const HOUR_MS = 3_600_000;
/** When a deleted deployment is looked at again while tasks of it are left. */
const TASKS_LEFT_RETRY_MS = 10_000;

export function* pruneHosting(
  parameters: Parameters<HostingStorage["pruneHosting"]>[0],
): Operation<number> {
  return (yield* pruneNodes(parameters)) + (yield* pruneDeployment(parameters));
}

interface Pruning {
  readonly nowMs: number;
  readonly limit: number;
}

/** Deletes nodes that died an hour ago, with their reports. */
function* pruneNodes({ nowMs, limit }: Pruning): Operation<number> {
  const gone = yield* query<{ node_id: string }>(
    `DELETE FROM nodes WHERE node_id IN (
       SELECT node_id FROM nodes WHERE expires_at_ms < ? ORDER BY expires_at_ms LIMIT ?)
     RETURNING node_id`,
    nowMs - HOUR_MS,
    Math.min(limit, 100),
  );
  if (gone.length > 0) {
    yield* query(
      `DELETE FROM deployment_reports WHERE node_id IN ${placeholders(1, gone.length)}`,
      ...gone.map(({ node_id }) => node_id),
    );
  }
  return gone.length;
}

/**
 * Deletes the remains of one deleted deployment. Its tombstone is removed after
 * an hour, when nothing is left.
 */
function* pruneDeployment({ nowMs, limit }: Pruning): Operation<number> {
  const [found] = yield* query<{ organization_id: string; deployment_id: string }>(
    `SELECT organization_id, deployment_id FROM deleted_deployments
     WHERE look_after_ms <= ? ORDER BY look_after_ms LIMIT 1`,
    nowMs,
  );
  if (found === undefined) {
    return 0;
  }
  const key = { organizationId: found.organization_id, deploymentId: found.deployment_id };
  yield* lockOrganization(key.organizationId);
  const deleted = yield* deleteRest(key, { nowMs, limit });
  if (deleted === 0) {
    yield* putOff(key, nowMs);
  }
  return deleted + 1;
}

function* deleteRest(
  { organizationId, deploymentId }: DeploymentKey,
  { nowMs, limit }: Pruning,
): Operation<number> {
  const ofDeployment = "organization_id = ? AND deployment_id = ?";
  const values = [organizationId, deploymentId];
  let deleted = 0;
  // The line counter before the lines, in the lock order of `appendLogs`.
  const tables = [
    ["deployment_log_sequences", "deployment_id"],
    ["deployment_logs", "sequence"],
    ["deployment_reports", "node_id"],
    ["launchers", "deployment_id"],
    ["manifests", "deployment_id"],
    ["metric_history", "began_at_ms"],
    ["webhook_deliveries", "delivery_id"],
  ] as const;
  for (const [table, key] of tables) {
    const rows = yield* query(
      `DELETE FROM ${table} WHERE ${ofDeployment} AND ${key} IN (
         SELECT ${key} FROM ${table} WHERE ${ofDeployment} ORDER BY ${key} LIMIT ?)
       RETURNING deployment_id`,
      ...values,
      ...values,
      limit,
    );
    deleted += rows.length;
  }
  // One revision at a time, because its artifact may have many files.
  const revisions = yield* query<{ digest: string }>(
    `DELETE FROM revisions WHERE ${ofDeployment} AND revision IN (
       SELECT revision FROM revisions WHERE ${ofDeployment} ORDER BY revision LIMIT 1)
     RETURNING digest`,
    ...values,
    ...values,
  );
  yield* dropArtifacts(
    organizationId,
    revisions.map(({ digest }) => digest),
    nowMs,
  );
  return deleted + revisions.length;
}

/**
 * Removes the tombstone, or postpones the next check: shortly while tasks are
 * still to be deleted.
 */
function* putOff({ organizationId, deploymentId }: DeploymentKey, nowMs: number): Operation<void> {
  const [task] = yield* query(
    "SELECT 1 AS there FROM tasks WHERE deployment_id = ? LIMIT 1",
    deploymentId,
  );
  const ended = yield* query(
    `DELETE FROM deleted_deployments
     WHERE organization_id = ? AND deployment_id = ? AND deleted_at_ms <= ? RETURNING deployment_id`,
    organizationId,
    deploymentId,
    task === undefined ? nowMs - HOUR_MS : 0,
  );
  if (ended.length === 0) {
    yield* query(
      `UPDATE deleted_deployments SET look_after_ms = ?
       WHERE organization_id = ? AND deployment_id = ?`,
      nowMs + (task === undefined ? HOUR_MS : TASKS_LEFT_RETRY_MS),
      organizationId,
      deploymentId,
    );
  }
}
