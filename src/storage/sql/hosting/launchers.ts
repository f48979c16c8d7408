/** Launchers: which one starts the machines of a deployment, by a lease, and what it reports. */
import type { HostingStorage } from "../../hosting/hosting.ts";
import type { LaunchRecord, LaunchReport } from "../../hosting/launchers.ts";
import { type Operation, query } from "../operation.ts";

/** Of a launcher's reason, where it is a part of another sentence. */
const MAX_SAID_CHARACTERS = 400;

/** What a launcher says of machines that do not come, or have not yet; undefined: nothing. */
export function launchText({ on, starting, reason }: LaunchReport): string | undefined {
  if (reason !== "") {
    const isLong = reason.length > MAX_SAID_CHARACTERS;
    return `the launcher on ${on} says: ${isLong ? `${reason.slice(0, MAX_SAID_CHARACTERS)}…` : reason}`;
  }
  return starting > 0
    ? `the launcher on ${on} has started ${starting === 1 ? "a machine" : `${starting} machines`}, and none takes calls yet`
    : undefined;
}

export function* holdLaunches({
  organizationId,
  launcher,
  tokenId,
  reports,
  nowMs,
  ttlMs,
}: Parameters<HostingStorage["holdLaunches"]>[0]): Operation<string[]> {
  const held: string[] = [];
  // In the order of ids, in which others lock them too.
  const ordered = reports.toSorted((one, other) =>
    one.deploymentId < other.deploymentId ? -1 : 1,
  );
  for (const { deploymentId, ...report } of ordered) {
    const rows = yield* query<{ deployment_id: string }>(
      `INSERT INTO launchers (organization_id, deployment_id, launcher, token_id, expires_at_ms,
         report)
       SELECT organization_id, deployment_id, ?, ?, CAST(? AS bigint), ?
       FROM deployments WHERE organization_id = ? AND deployment_id = ?
       ON CONFLICT (organization_id, deployment_id) DO UPDATE
         SET launcher = excluded.launcher, token_id = excluded.token_id,
           expires_at_ms = excluded.expires_at_ms, report = excluded.report
         WHERE launchers.expires_at_ms <= ?
           OR (launchers.launcher = excluded.launcher AND launchers.token_id = excluded.token_id)
       RETURNING deployment_id`,
      launcher,
      tokenId,
      nowMs + ttlMs,
      JSON.stringify(report satisfies LaunchReport),
      organizationId,
      deploymentId,
      nowMs,
    );
    held.push(...rows.map((row) => row.deployment_id));
  }
  return held;
}

export function* holdsLaunch({
  organizationId,
  launcher,
  tokenId,
  deploymentId,
  nowMs,
}: Parameters<HostingStorage["holdsLaunch"]>[0]): Operation<boolean> {
  const rows = yield* query(
    `SELECT 1 AS held FROM launchers
     WHERE organization_id = ? AND deployment_id = ? AND launcher = ? AND token_id = ?
       AND expires_at_ms > ?`,
    organizationId,
    deploymentId,
    launcher,
    tokenId,
    nowMs,
  );
  return rows.length > 0;
}

export function* endLaunches({
  organizationId,
  launcher,
  tokenId,
}: Parameters<HostingStorage["endLaunches"]>[0]): Operation<void> {
  yield* query(
    "DELETE FROM launchers WHERE organization_id = ? AND launcher = ? AND token_id = ?",
    organizationId,
    launcher,
    tokenId,
  );
}

export function* listLaunches({
  organizationId,
  deploymentId,
  nowMs,
}: Parameters<HostingStorage["listLaunches"]>[0]): Operation<LaunchRecord[]> {
  const rows = yield* query<{ deployment_id: string; token_id: string; report: string }>(
    `SELECT deployment_id, token_id, report FROM launchers
     WHERE organization_id = ? AND expires_at_ms > ?
       ${deploymentId === undefined ? "" : "AND deployment_id = ?"} ORDER BY deployment_id`,
    organizationId,
    nowMs,
    ...(deploymentId === undefined ? [] : [deploymentId]),
  );
  return rows.map((row) => {
    const report = JSON.parse(row.report) as LaunchReport;
    return {
      ...report,
      organizationId,
      deploymentId: row.deployment_id,
      tokenId: row.token_id,
      said: launchText(report),
    };
  });
}
