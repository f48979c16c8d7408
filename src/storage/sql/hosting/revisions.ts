/** Revisions of deployments: adds, lists, rolls back, and sets the desired state. */
import type { DeploymentRecord } from "../../accounts/organizations.ts";
import type { Page } from "../../accounts/page.ts";
import type { DeploymentKey } from "../../hosting/deployment-key.ts";
import type { HostingStorage } from "../../hosting/hosting.ts";
import type { RevisionRecord, Revisions, SecretsConfirmation } from "../../hosting/revisions.ts";
import { record } from "../accounts/audit.ts";
import { announce } from "../accounts/changes.ts";
import { storeDeployment } from "../accounts/deployment-rows.ts";
import { findDeployment } from "../accounts/deployments.ts";
import { lockOrganization } from "../accounts/locks.ts";
import { toPage } from "../accounts/rows.ts";
import { type Operation, query } from "../operation.ts";
import { dropArtifacts } from "./artifacts.ts";
import { withheldDetail } from "./secrets.ts";

/**
 * Stores the next revision of a deployment, makes it the target, and deletes
 * revisions that are too old. The target is always the newest one.
 */
export function* addRevision(
  deployment: DeploymentRecord,
  revision: {
    readonly digest: string;
    readonly rolledBackTo?: number;
    /** As JSON. */
    readonly source?: string | undefined;
    readonly createdBy: string;
    readonly kept: number;
    /** Default: as the newest confirmed revision of the same artifact, if there is one. */
    readonly confirmed?: SecretsConfirmation | undefined;
  },
): Operation<DeploymentRecord & { readonly targetRevision: number }> {
  const { organizationId, deploymentId, updatedAtMs: nowMs } = deployment;
  const targetRevision = (deployment.targetRevision ?? 0) + 1;
  const after = { ...deployment, targetRevision };
  const confirmed = revision.confirmed ?? (yield* confirmationOf(deployment, revision.digest));
  yield* query(
    `INSERT INTO revisions (organization_id, deployment_id, revision, digest, rolled_back_to,
       created_at_ms, created_by, version, secrets_confirmed_by, secrets_confirmed_at_ms, source)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    organizationId,
    deploymentId,
    targetRevision,
    revision.digest,
    revision.rolledBackTo,
    nowMs,
    revision.createdBy,
    deployment.version,
    confirmed?.by,
    confirmed?.atMs,
    revision.source,
  );
  const dropped = yield* query<{ digest: string }>(
    `DELETE FROM revisions WHERE organization_id = ? AND deployment_id = ? AND revision <= ?
       AND revision NOT IN (SELECT revision FROM deployment_reports
         WHERE organization_id = ? AND deployment_id = ? AND revision IS NOT NULL)
     RETURNING digest`,
    organizationId,
    deploymentId,
    targetRevision - revision.kept,
    organizationId,
    deploymentId,
  );
  yield* dropArtifacts(
    organizationId,
    dropped.map(({ digest }) => digest),
    nowMs,
  );
  return after;
}

/** Who confirmed that an artifact may have the deployment's secrets, by its newest revision. */
function* confirmationOf(
  { organizationId, deploymentId }: DeploymentKey,
  digest: string,
): Operation<SecretsConfirmation | undefined> {
  const [row] = yield* query<{ secrets_confirmed_by: string; secrets_confirmed_at_ms: number }>(
    `SELECT secrets_confirmed_by, secrets_confirmed_at_ms FROM revisions
     WHERE organization_id = ? AND deployment_id = ? AND digest = ?
       AND secrets_confirmed_by IS NOT NULL
     ORDER BY revision DESC LIMIT 1`,
    organizationId,
    deploymentId,
    digest,
  );
  return row && { by: row.secrets_confirmed_by, atMs: row.secrets_confirmed_at_ms };
}

export function* rollBack(
  parameters: Parameters<HostingStorage["rollBack"]>[0],
): Operation<Awaited<ReturnType<Revisions["rollBack"]>>> {
  const { organizationId, name, nowMs, by, keptRevisions: kept } = parameters;
  yield* lockOrganization(organizationId);
  const before = yield* findDeployment({ organizationId, name });
  if (before === undefined) {
    return { outcome: "not_found" };
  }
  const [operator, wanted] =
    parameters.revision === undefined
      ? ["<", before.targetRevision ?? 0]
      : ["=", parameters.revision];
  const [earlier] = yield* query<Pick<RevisionRow, "revision" | "digest" | "source">>(
    `SELECT revision, digest, source FROM revisions
     WHERE organization_id = ? AND deployment_id = ? AND revision ${operator} ?
     ORDER BY revision DESC LIMIT 1`,
    organizationId,
    before.deploymentId,
    wanted,
  );
  if (earlier === undefined) {
    return { outcome: "revision_not_found" };
  }
  const { digest, revision: rolledBackTo, source } = earlier;
  const deployment = yield* addRevision(
    { ...before, updatedAtMs: nowMs, version: before.version + 1 },
    { digest, rolledBackTo, source: source ?? undefined, createdBy: by.name, kept },
  );
  yield* storeDeployment(deployment);
  yield* record(parameters, organizationId, {
    action: "deployment.roll_back",
    subjectId: before.deploymentId,
    subject: name,
    details: {
      revision: String(deployment.targetRevision),
      to: String(rolledBackTo),
      digest,
      ...(yield* withheldDetail(deployment)),
    },
  });
  yield* announce(nowMs, { kind: "deployment", id: before.deploymentId });
  return { outcome: "created", deployment, revision: deployment.targetRevision };
}

export function* setDesiredState(
  parameters: Parameters<HostingStorage["setDesiredState"]>[0],
): Operation<Awaited<ReturnType<Revisions["setDesiredState"]>>> {
  const { organizationId, name, nowMs, desiredState } = parameters;
  yield* lockOrganization(organizationId);
  const before = yield* findDeployment({ organizationId, name });
  if (before === undefined) {
    return { outcome: "not_found" };
  }
  if (desiredState === "running" && before.targetRevision === undefined) {
    return { outcome: "no_revision" };
  }
  if (desiredState === before.desiredState) {
    return { outcome: "changed", deployment: before };
  }
  const { deploymentId, version } = before;
  const deployment = { ...before, desiredState, updatedAtMs: nowMs, version: version + 1 };
  yield* storeDeployment(deployment);
  yield* record(parameters, organizationId, {
    action: desiredState === "running" ? "deployment.start" : "deployment.stop",
    subjectId: deploymentId,
    subject: name,
  });
  yield* announce(nowMs, { kind: "deployment", id: deploymentId });
  return { outcome: "changed", deployment };
}

interface RevisionRow {
  readonly revision: number;
  readonly digest: string;
  readonly rolled_back_to: number | null;
  readonly created_at_ms: number;
  readonly created_by: string;
  readonly files: number;
  readonly size_bytes: number;
  readonly endpoints: string;
  readonly secrets_confirmed_by: string | null;
  readonly secrets_confirmed_at_ms: number | null;
  readonly source: string | null;
  readonly served_at_ms: number | null;
}

export function* listRevisions({
  organizationId,
  deploymentId,
  limit,
  after,
}: Parameters<HostingStorage["listRevisions"]>[0]): Operation<Page<RevisionRecord>> {
  const rows = yield* query<RevisionRow>(
    `SELECT r.revision, r.digest, r.rolled_back_to, r.created_at_ms, r.created_by, a.files,
       a.size_bytes, a.endpoints, r.secrets_confirmed_by, r.secrets_confirmed_at_ms, r.source, r.served_at_ms
     FROM revisions r JOIN artifacts a
       ON a.organization_id = r.organization_id || '' AND a.digest = r.digest
     WHERE r.organization_id = ? AND r.deployment_id = ? AND r.revision < ?
     ORDER BY r.revision DESC LIMIT ?`,
    organizationId,
    deploymentId,
    after === undefined ? MAX_REVISION : Number(after),
    limit + 1,
  );
  return toPage(rows.map(toRevision), limit, ({ revision }) => String(revision));
}

/** Highest number of a revision, which is an integer of four bytes. */
const MAX_REVISION = 2 ** 31 - 1;

function toRevision(row: RevisionRow): RevisionRecord {
  const { secrets_confirmed_by: by, secrets_confirmed_at_ms: atMs } = row;
  return {
    revision: row.revision,
    digest: row.digest,
    rolledBackTo: row.rolled_back_to ?? undefined,
    createdAtMs: row.created_at_ms,
    createdBy: row.created_by,
    files: row.files,
    sizeBytes: row.size_bytes,
    endpoints: JSON.parse(row.endpoints) as RevisionRecord["endpoints"],
    secretsConfirmed: by === null || atMs === null ? undefined : { by, atMs },
    source: row.source === null ? undefined : (JSON.parse(row.source) as RevisionRecord["source"]),
    servedAtMs: row.served_at_ms ?? undefined,
  };
}

export function* getIndex({
  organizationId,
  digest,
}: Parameters<HostingStorage["getIndex"]>[0]): Operation<string | undefined> {
  const [row] = yield* query<{ index_text: string }>(
    "SELECT index_text FROM artifacts WHERE organization_id = ? AND digest = ?",
    organizationId,
    digest,
  );
  return row?.index_text;
}
