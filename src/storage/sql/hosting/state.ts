/** Aggregates the reports of nodes into the state of deployments. */
import type { DeploymentRecord } from "../../accounts/organizations.ts";
import type { HostingStorage } from "../../hosting/hosting.ts";
import type { LaunchReport } from "../../hosting/launchers.ts";
import type { DeploymentReport, DeploymentState, HostingStatus } from "../../hosting/nodes.ts";
import type { EndpointSummary } from "../../hosting/revisions.ts";
import { type Operation, pieces, placeholders, query } from "../operation.ts";
import { launchText } from "./launchers.ts";
import { type LiveReport, liveReports } from "./nodes.ts";
import { type SecretNames, secretNamesOf } from "./secrets.ts";

/** Deployments that one statement reads. */
const MAX_DEPLOYMENTS_PER_STATEMENT = 100;

export function* describeDeployments({
  organizationId,
  deployments,
  nowMs,
}: Parameters<HostingStorage["describeDeployments"]>[0]): Operation<DeploymentState[]> {
  const ids = deployments.map(({ deploymentId }) => deploymentId);
  const reports = yield* liveReports(organizationId, ids, nowMs);
  const secrets = new Map<string, SecretNames>();
  const endpoints = new Map<string, EndpointSummary[]>();
  const launches = new Map<string, LaunchReport>();
  for (const piece of pieces(ids, MAX_DEPLOYMENTS_PER_STATEMENT)) {
    const these = placeholders(1, piece.length);
    for (const [id, names] of yield* secretNamesOf(organizationId, piece)) {
      secrets.set(id, names);
    }
    const rows = yield* query<{ deployment_id: string; endpoints: string; launch: string | null }>(
      `SELECT d.deployment_id, a.endpoints, l.report AS launch FROM deployments d
         JOIN revisions r ON r.organization_id = d.organization_id || ''
           AND r.deployment_id = d.deployment_id AND r.revision = d.target_revision
         JOIN artifacts a ON a.organization_id = d.organization_id || '' AND a.digest = r.digest
         LEFT JOIN launchers l ON l.organization_id = d.organization_id || ''
           AND l.deployment_id = d.deployment_id AND l.expires_at_ms > ?
       WHERE d.organization_id = ? AND d.deployment_id IN ${these}`,
      nowMs,
      organizationId,
      ...piece,
    );
    for (const { deployment_id: id, endpoints: text, launch } of rows) {
      endpoints.set(id, JSON.parse(text) as EndpointSummary[]);
      if (launch !== null) {
        launches.set(id, JSON.parse(launch) as LaunchReport);
      }
    }
  }
  return deployments.map((deployment) => ({
    ...aggregate(deployment, {
      reports: reports.get(deployment.deploymentId) ?? [],
      launch: launches.get(deployment.deploymentId),
    }),
    secretNames: secrets.get(deployment.deploymentId)?.all ?? [],
    withheldSecrets: secrets.get(deployment.deploymentId)?.withheld ?? [],
    endpoints: endpoints.get(deployment.deploymentId) ?? [],
  }));
}

type Aggregate = Omit<DeploymentState, "secretNames" | "withheldSecrets" | "endpoints">;

interface Reports {
  /** Of all nodes. */
  readonly reports: readonly LiveReport[];
  /** Of its launcher; undefined: none is at work. */
  readonly launch: LaunchReport | undefined;
}

function aggregate(deployment: DeploymentRecord, { reports, launch }: Reports): Aggregate {
  const serving = reports.filter(
    ({ workers, status }) => workers > 0 || status === "ready" || status === "waiting",
  );
  const revisions = serving.flatMap(({ revision }) => revision ?? []);
  return {
    ...statusOf(deployment, reports, launch),
    revision: revisions.length > 0 ? Math.min(...revisions) : undefined,
    workers: reports.reduce((sum, { workers }) => sum + workers, 0),
    nodes: serving.length,
    observedVersion: reports.length === 0 ? 0 : Math.min(...reports.map(({ version }) => version)),
    placements: reports.filter(isPlaced).map(({ nodeId, status, revision, workers }) => ({
      nodeId,
      status: status === "waiting" ? "degraded" : status,
      revision,
      workers,
    })),
  };
}

/** Whether the node runs something of it, or is to. */
const isPlaced = ({ status, workers }: LiveReport): boolean => status !== "stopped" || workers > 0;

function finishingText(workers: number): string {
  switch (workers) {
    case 0:
      return "";
    case 1:
      return "1 worker is finishing what it runs";
    default:
      return `${workers} workers are finishing what they run`;
  }
}

/**
 * The first matching status: stopped; failed, when no node could start the
 * target revision; starting, while a node has not reported on it; degraded,
 * when a node is degraded, or has failed while others have not, or when all wait for
 * workers that join; ready.
 */
function statusOf(
  { desiredState, targetRevision }: DeploymentRecord,
  all: readonly DeploymentReport[],
  launch: LaunchReport | undefined,
): { readonly status: HostingStatus; readonly reason: string } {
  if (targetRevision === undefined) {
    return { status: "stopped", reason: "nothing has been deployed yet" };
  }
  // A node that waits does not lack anything, as long as others run it. One that waits for
  // workers of another revision has not taken up this one.
  const running = all.filter(
    (report) => report.status !== "waiting" || report.targetRevision !== targetRevision,
  );
  const reports = running.length === 0 ? all : running;
  if (desiredState === "stopped") {
    const workers = reports.reduce((sum, report) => sum + report.workers, 0);
    return { status: "stopped", reason: finishingText(workers) };
  }
  const current = reports.filter((report) => report.targetRevision === targetRevision);
  const failed = current.filter(({ status }) => status === "failed");
  const [failure] = failed;
  if (failure !== undefined && failed.length === reports.length) {
    return { status: "failed", reason: failure.reason };
  }
  const starting = current.find(({ status }) => status === "starting" || status === "stopped");
  if (starting !== undefined || current.length < reports.length || reports.length === 0) {
    const waiting = reports.length === 0 ? "no node has taken it up yet" : "";
    return { status: "starting", reason: failure?.reason ?? starting?.reason ?? waiting };
  }
  const degraded =
    failure ?? current.find(({ status }) => status === "degraded" || status === "waiting");
  return degraded === undefined
    ? { status: "ready", reason: "" }
    : { status: "degraded", reason: withLaunch(degraded, launch) };
}

/** The reason, with what a launcher says of workers that do not come, in its first line. */
function withLaunch(
  { status, workers, reason }: DeploymentReport,
  launch: LaunchReport | undefined,
): string {
  const said =
    launch !== undefined && (status === "waiting" || workers === 0)
      ? launchText(launch)
      : undefined;
  if (said === undefined) {
    return reason;
  }
  const [why = "", ...more] = reason.split("\n");
  return [`${why}; ${said}`, ...more].join("\n");
}
