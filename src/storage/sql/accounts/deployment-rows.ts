/** Rows of deployments. Writers hold the organization's lock. */
import type { Deed } from "../../accounts/deed.ts";
import type {
  DeploymentRecord,
  DesiredState,
  Openable,
  PausedEndpoint,
} from "../../accounts/organizations.ts";
import {
  DEFAULT_SETTINGS,
  readSettings,
  SETTING_COLUMNS,
  storedSettings,
} from "../../deployment-settings.ts";
import { type Operation, query } from "../operation.ts";

export interface DeploymentRow {
  readonly deployment_id: string;
  readonly organization_id: string;
  readonly organization: string;
  readonly name: string;
  readonly requires_token: number;
  readonly created_at_ms: number;
  readonly created_by: string;
  readonly updated_at_ms: number;
  readonly desired_state: DesiredState;
  readonly target_revision: number | null;
  readonly version: number;
  readonly secrets_since: number;
  readonly secrets_version: number;
  readonly paused: string | null;
  /** Of a setting. */
  readonly [column: string]: unknown;
}

export const DEPLOYMENT_COLUMNS = `d.deployment_id, d.organization_id, o.name AS organization, d.name,
    d.requires_token, d.created_at_ms, d.created_by, d.updated_at_ms, d.desired_state,
    d.target_revision, d.version, d.secrets_since, d.secrets_version,
    (SELECT string_agg(p.endpoint || '\t' || p.paused_at_ms || '\t' || p.paused_by, '\n')
      FROM paused_endpoints p WHERE p.deployment_id = d.deployment_id) AS paused,
    ${SETTING_COLUMNS.map((column) => `d.${column}`).join(", ")}`;

export const SELECT_DEPLOYMENTS = `SELECT ${DEPLOYMENT_COLUMNS}
  FROM deployments d JOIN organizations o ON o.organization_id = d.organization_id`;

export function toDeployment(row: DeploymentRow): DeploymentRecord {
  return {
    deploymentId: row.deployment_id,
    organizationId: row.organization_id,
    organization: row.organization,
    name: row.name,
    authorization: row.requires_token === 1,
    createdAtMs: row.created_at_ms,
    createdBy: row.created_by,
    updatedAtMs: row.updated_at_ms,
    desiredState: row.desired_state,
    targetRevision: row.target_revision ?? undefined,
    settings: readSettings(row),
    version: row.version,
    secretsSince: row.secrets_since,
    secretsVersion: row.secrets_version,
    pausedEndpoints: row.paused === null ? [] : toPaused(row.paused),
  };
}

/** Lines of a name, a time and who did it, with tabs between them: no name has control characters. */
function toPaused(lines: string): PausedEndpoint[] {
  const paused = lines.split("\n").map((line) => {
    const [endpoint = "", pausedAtMs = "", pausedBy = ""] = line.split("\t");
    return { endpoint, pausedAtMs: Number(pausedAtMs), pausedBy };
  });
  return paused.sort((one, other) => (one.endpoint < other.endpoint ? -1 : 1));
}

/** Whether a change would switch off authorization without permission. */
export function opensWrongly(
  { deploymentId, authorization }: DeploymentRecord,
  change: { readonly authorization?: boolean; readonly openable?: Openable },
): boolean {
  const opens = authorization && change.authorization === false;
  return opens && change.openable !== undefined && !change.openable.includes(deploymentId);
}

/** Builds a new deployment with default settings and without a revision. */
export function newDeployment({
  organizationId,
  organization,
  deploymentId,
  name,
  authorization,
  nowMs,
  by,
}: Omit<Deed, "eventId"> & {
  readonly organizationId: string;
  readonly organization: string;
  readonly deploymentId: string;
  readonly name: string;
  readonly authorization: boolean;
}): DeploymentRecord {
  return {
    deploymentId,
    organizationId,
    organization,
    name,
    authorization,
    createdAtMs: nowMs,
    createdBy: by.name,
    updatedAtMs: nowMs,
    desiredState: "running",
    targetRevision: undefined,
    settings: DEFAULT_SETTINGS,
    version: 1,
    secretsSince: 0,
    secretsVersion: 0,
    pausedEndpoints: [],
  };
}

/** The mutable columns of a deployment. */
const CHANGING = {
  requires_token: ({ authorization }) => authorization,
  updated_at_ms: ({ updatedAtMs }) => updatedAtMs,
  desired_state: ({ desiredState }) => desiredState,
  target_revision: ({ targetRevision }) => targetRevision,
  version: ({ version }) => version,
  secrets_since: ({ secretsSince }) => secretsSince,
  secrets_version: ({ secretsVersion }) => secretsVersion,
} as const satisfies Record<
  string,
  (deployment: DeploymentRecord) => string | number | boolean | undefined
>;

const COLUMNS = [...Object.keys(CHANGING), ...SETTING_COLUMNS];

function stored(deployment: DeploymentRecord) {
  const own = Object.values(CHANGING).map((value) => value(deployment));
  return [...own, ...storedSettings(deployment.settings)];
}

export function* insertDeployment(deployment: DeploymentRecord): Operation<void> {
  const fixed = "organization_id, deployment_id, name, created_at_ms, created_by";
  yield* query(
    `INSERT INTO deployments (${fixed}, ${COLUMNS.join(", ")})
     VALUES (?, ?, ?, ?, ?, ${COLUMNS.map(() => "?").join(", ")})`,
    deployment.organizationId,
    deployment.deploymentId,
    deployment.name,
    deployment.createdAtMs,
    deployment.createdBy,
    ...stored(deployment),
  );
}

/** Writes the mutable columns of a deployment. */
export function* storeDeployment(deployment: DeploymentRecord): Operation<void> {
  yield* query(
    `UPDATE deployments SET ${COLUMNS.map((column) => `${column} = ?`).join(", ")}
     WHERE organization_id = ? AND deployment_id = ?`,
    ...stored(deployment),
    deployment.organizationId,
    deployment.deploymentId,
  );
}

/**
 * `secretsSince` after a change of variables or secrets. What a caller changes who may not use
 * the secrets does not meet earlier ones: an address among them decides where confirmed code
 * sends the others.
 */
export function secretsSince(
  { settings, secretsSince: since }: DeploymentRecord,
  after: Pick<DeploymentRecord, "settings" | "version">,
  change: { readonly usesSecrets?: boolean; readonly changesSecrets?: boolean },
): number {
  const { usesSecrets = false, changesSecrets = false } = change;
  const entries = ({ env }: DeploymentRecord["settings"]) =>
    JSON.stringify(Object.entries(env).toSorted());
  const changes = changesSecrets || entries(settings) !== entries(after.settings);
  return changes && !usesSecrets ? after.version : since;
}

export function* countDeployments(organizationId: string): Operation<number> {
  const [row] = yield* query<{ count: number }>(
    "SELECT count(*) AS count FROM deployments WHERE organization_id = ?",
    organizationId,
  );
  return row?.count ?? 0;
}
