/** Nodes: heartbeats, reports about deployments, and the end of a node. */
import type { DeploymentKey } from "../../hosting/deployment-key.ts";
import type { HostingStorage } from "../../hosting/hosting.ts";
import type {
  DeploymentReport,
  LivingNodes,
  NodeFacts,
  NodeRecord,
  NodeWorkers,
} from "../../hosting/nodes.ts";
import { type Operation, pieces, placeholders, query } from "../operation.ts";

/** Nodes that are read: far more than share one database. */
const MAX_LISTED_NODES = 1_000;

/** Reason in a node's report of a deployment, cut beyond. */
const MAX_REPORT_REASON_CHARACTERS = 8_000;

export function* beat({
  nodeId,
  machine = "",
  url,
  facts,
  nowMs,
  ttlMs,
}: Parameters<HostingStorage["beat"]>[0]): Operation<LivingNodes> {
  // Counts the other nodes: whether a statement sees the row that it writes
  // differs between databases.
  const [row] = yield* query<{ others: number; others_drained: number; drained: number }>(
    `INSERT INTO nodes (node_id, url, started_at_ms, expires_at_ms, facts, machine, heard_at_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (node_id) DO UPDATE
       SET url = excluded.url, expires_at_ms = excluded.expires_at_ms, facts = excluded.facts,
         machine = excluded.machine, heard_at_ms = excluded.heard_at_ms
     RETURNING (
       SELECT CAST(count(*) AS integer) FROM nodes AS n WHERE n.node_id <> ? AND n.expires_at_ms > ?
     ) AS others, (
       SELECT CAST(count(*) AS integer) FROM nodes AS n JOIN drained_machines AS d
         ON d.organization_id = '' AND d.machine = n.machine
       WHERE n.node_id <> ? AND n.expires_at_ms > ?
     ) AS others_drained, (
       SELECT CAST(count(*) AS integer) FROM drained_machines AS d
       WHERE d.organization_id = '' AND d.machine = ?
     ) AS drained`,
    nodeId,
    url,
    nowMs,
    nowMs + ttlMs,
    facts && JSON.stringify(facts),
    machine,
    nowMs,
    nodeId,
    nowMs,
    nodeId,
    nowMs,
    machine,
  );
  const { others = 0, others_drained: othersDrained = 0, drained = 0 } = row ?? {};
  const isDrained = drained > 0;
  return {
    living: 1 + others,
    taking: (isDrained ? 0 : 1) + others - othersDrained,
    isDrained,
  };
}

interface NodeRow {
  readonly node_id: string;
  readonly url: string | null;
  readonly started_at_ms: number;
  readonly facts: string | null;
  readonly machine: string | null;
  readonly heard_at_ms: number | null;
}

export function* listNodes({
  nowMs,
}: Parameters<HostingStorage["listNodes"]>[0]): Operation<NodeRecord[]> {
  const rows = yield* query<NodeRow>(
    `SELECT node_id, url, started_at_ms, facts, machine, heard_at_ms FROM nodes
     WHERE expires_at_ms > ? ORDER BY expires_at_ms DESC LIMIT ${MAX_LISTED_NODES}`,
    nowMs,
  );
  const nodes = rows.map((row) => ({
    nodeId: row.node_id,
    url: row.url ?? undefined,
    startedAtMs: row.started_at_ms,
    heardAtMs: row.heard_at_ms ?? row.started_at_ms,
    machine: row.machine ?? "",
    facts: row.facts === null ? undefined : (JSON.parse(row.facts) as NodeFacts),
  }));
  return nodes.sort((one, other) => (one.nodeId < other.nodeId ? -1 : 1));
}

export function* endNode({ nodeId }: Parameters<HostingStorage["endNode"]>[0]): Operation<void> {
  yield* query("DELETE FROM nodes WHERE node_id = ?", nodeId);
  yield* query("DELETE FROM deployment_reports WHERE node_id = ?", nodeId);
}

/** Sorts by key, the lock order that avoids deadlocks. */
function ordered<Key extends DeploymentKey>(keys: readonly Key[]): Key[] {
  const keyOf = ({ organizationId, deploymentId }: Key) => `${organizationId}/${deploymentId}`;
  return keys.toSorted((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1));
}

export function* reportDeployments({
  nodeId,
  reports,
  nowMs,
}: Parameters<HostingStorage["reportDeployments"]>[0]): Operation<void> {
  for (const report of ordered(reports)) {
    yield* query(
      `INSERT INTO deployment_reports (organization_id, deployment_id, node_id, status, reason,
         revision, target_revision, version, workers)
       SELECT organization_id, deployment_id, ?, ?, ?, CAST(? AS integer), CAST(? AS integer),
         CAST(? AS integer), CAST(? AS integer)
       FROM deployments WHERE organization_id = ? AND deployment_id = ?
       ON CONFLICT (organization_id, deployment_id, node_id) DO UPDATE
         SET status = excluded.status, reason = excluded.reason, revision = excluded.revision,
           target_revision = excluded.target_revision, version = excluded.version,
           workers = excluded.workers`,
      nodeId,
      report.status,
      report.reason.slice(0, MAX_REPORT_REASON_CHARACTERS),
      report.revision,
      report.targetRevision,
      report.version,
      report.workers,
      report.organizationId,
      report.deploymentId,
    );
    const isServed = report.status === "ready" || report.status === "degraded";
    if (isServed && report.revision !== undefined && report.revision === report.targetRevision) {
      yield* query(
        `UPDATE revisions SET served_at_ms = ?
         WHERE organization_id = ? AND deployment_id = ? AND revision = ? AND served_at_ms IS NULL`,
        nowMs,
        report.organizationId,
        report.deploymentId,
        report.revision,
      );
    }
  }
}

export function* reportWorkers({
  nodeId,
  reports,
}: Parameters<HostingStorage["reportWorkers"]>[0]): Operation<string[]> {
  const stored: string[] = [];
  for (const report of ordered(reports)) {
    const { organizationId, deploymentId, workers, omitted, wanted, launched } = report;
    const isEmpty = workers.length === 0 && wanted === undefined;
    const rows = yield* query<{ deployment_id: string }>(
      `UPDATE deployment_reports SET running = ?
       WHERE organization_id = ? AND deployment_id = ? AND node_id = ? RETURNING deployment_id`,
      isEmpty ? undefined : JSON.stringify({ workers, omitted, wanted, launched }),
      organizationId,
      deploymentId,
      nodeId,
    );
    stored.push(...rows.map((row) => row.deployment_id));
  }
  return stored;
}

export function* listWorkers({
  organizationId,
  deploymentId,
  nowMs,
}: Parameters<HostingStorage["listWorkers"]>[0]): Operation<
  Awaited<ReturnType<HostingStorage["listWorkers"]>>
> {
  const rows = yield* query<{ node_id: string; running: string }>(
    `SELECT r.node_id, r.running FROM deployment_reports r JOIN nodes n ON n.node_id = r.node_id || ''
     WHERE r.organization_id = ? AND r.deployment_id = ? AND r.running IS NOT NULL
       AND n.expires_at_ms > ?
     ORDER BY r.node_id`,
    organizationId,
    deploymentId,
    nowMs,
  );
  return rows.map((row) => ({
    ...(JSON.parse(row.running) as NodeWorkers),
    nodeId: row.node_id,
  }));
}

export function* withdrawReports({
  nodeId,
  deployments,
}: Parameters<HostingStorage["withdrawReports"]>[0]): Operation<void> {
  for (const { organizationId, deploymentId } of ordered(deployments)) {
    yield* query(
      `DELETE FROM deployment_reports
       WHERE organization_id = ? AND deployment_id = ? AND node_id = ?`,
      organizationId,
      deploymentId,
      nodeId,
    );
  }
}

/** A report, and the node that made it. */
export interface LiveReport extends DeploymentReport {
  readonly nodeId: string;
}

interface ReportRow {
  readonly deployment_id: string;
  readonly node_id: string;
  readonly status: DeploymentReport["status"];
  readonly reason: string;
  readonly revision: number | null;
  readonly target_revision: number | null;
  readonly version: number;
  readonly workers: number;
}

/** Deployments whose reports one statement reads. */
const MAX_REPORTS_PER_STATEMENT = 100;

/** Reports of living nodes, by deployment; those of one are sorted by node. */
export function* liveReports(
  organizationId: string,
  deploymentIds: readonly string[],
  nowMs: number,
): Operation<Map<string, LiveReport[]>> {
  const reports = new Map<string, LiveReport[]>();
  for (const piece of pieces(deploymentIds, MAX_REPORTS_PER_STATEMENT)) {
    const rows = yield* query<ReportRow>(
      `SELECT r.deployment_id, r.node_id, r.status, r.reason, r.revision, r.target_revision, r.version,
         r.workers
       FROM deployment_reports r JOIN nodes n ON n.node_id = r.node_id || ''
       WHERE r.organization_id = ? AND r.deployment_id IN ${placeholders(1, piece.length)}
         AND n.expires_at_ms > ?
       ORDER BY r.deployment_id, r.node_id`,
      organizationId,
      ...piece,
      nowMs,
    );
    for (const row of rows) {
      const report = toReport(organizationId, row);
      const { deploymentId } = report;
      reports.set(deploymentId, [...(reports.get(deploymentId) ?? []), report]);
    }
  }
  return reports;
}

function toReport(organizationId: string, row: ReportRow): LiveReport {
  return {
    organizationId,
    deploymentId: row.deployment_id,
    nodeId: row.node_id,
    status: row.status,
    reason: row.reason,
    revision: row.revision ?? undefined,
    targetRevision: row.target_revision ?? undefined,
    version: row.version,
    workers: row.workers,
  };
}
