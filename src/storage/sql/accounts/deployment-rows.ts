/** Rows of deployments. Writers hold the organization's lock. */
import type { Deed } from "../../accounts/deed.ts";
import type {
  DeploymentRecord,
  DesiredState,
  MachineLabels,
  NetworkSettings,
  Openable,
  WorkerPlace,
} from "../../accounts/organizations.ts";
import { DEFAULT_SETTINGS } from "../../default-settings.ts";
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
  readonly min_workers: number;
  readonly max_workers: number;
  readonly memory_mib: number;
  readonly cpu: number;
  readonly environment: string;
  readonly network: string;
  readonly queue_time_ms: number;
  readonly retention_ms: number;
  readonly requires: string;
  readonly place: WorkerPlace;
  readonly version: number;
  readonly secrets_since: number;
}

export const DEPLOYMENT_COLUMNS = `d.deployment_id, d.organization_id, o.name AS organization, d.name,
    d.requires_token, d.created_at_ms, d.created_by, d.updated_at_ms, d.desired_state,
    d.target_revision, d.min_workers, d.max_workers, d.memory_mib, d.cpu, d.environment, d.network,
    d.requires, d.place, d.queue_time_ms, d.retention_ms, d.version, d.secrets_since`;

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
    settings: {
      minWorkers: row.min_workers,
      maxWorkers: row.max_workers,
      memoryMib: row.memory_mib,
      cpu: row.cpu,
      env: JSON.parse(row.environment) as { [name: string]: string },
      network: JSON.parse(row.network) as NetworkSettings,
      queueTimeMs: row.queue_time_ms,
      retentionMs: row.retention_ms,
      requires: JSON.parse(row.requires) as MachineLabels,
      place: row.place,
    },
    version: row.version,
    secretsSince: row.secrets_since,
  };
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
  };
}

/** The mutable columns of a deployment. */
const CHANGING = {
  requires_token: ({ authorization }) => authorization,
  updated_at_ms: ({ updatedAtMs }) => updatedAtMs,
  desired_state: ({ desiredState }) => desiredState,
  target_revision: ({ targetRevision }) => targetRevision,
  min_workers: ({ settings }) => settings.minWorkers,
  max_workers: ({ settings }) => settings.maxWorkers,
  memory_mib: ({ settings }) => settings.memoryMib,
  cpu: ({ settings }) => settings.cpu,
  environment: ({ settings }) => JSON.stringify(settings.env),
  network: ({ settings }) => JSON.stringify(settings.network),
  queue_time_ms: ({ settings }) => settings.queueTimeMs,
  retention_ms: ({ settings }) => settings.retentionMs,
  requires: ({ settings }) => JSON.stringify(settings.requires),
  place: ({ settings }) => settings.place,
  version: ({ version }) => version,
  secrets_since: ({ secretsSince }) => secretsSince,
} as const satisfies Record<
  string,
  (deployment: DeploymentRecord) => string | number | boolean | undefined
>;

const COLUMNS = Object.keys(CHANGING);

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
    ...Object.values(CHANGING).map((stored) => stored(deployment)),
  );
}

/** Writes the mutable columns of a deployment. */
export function* storeDeployment(deployment: DeploymentRecord): Operation<void> {
  yield* query(
    `UPDATE deployments SET ${COLUMNS.map((column) => `${column} = ?`).join(", ")}
     WHERE organization_id = ? AND deployment_id = ?`,
    ...Object.values(CHANGING).map((stored) => stored(deployment)),
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

/**
 * Describes changed settings with their new values for the audit log; of
 * environment variables, only the names.
 */
export function changesBetween(
  before: DeploymentRecord,
  after: DeploymentRecord,
): { readonly [name: string]: string } {
  const shown = ({ settings }: DeploymentRecord): [string, string][] => [
    ["min_workers", String(settings.minWorkers)],
    ["max_workers", String(settings.maxWorkers)],
    ["memory_mib", String(settings.memoryMib)],
    ["cpu", String(settings.cpu)],
    ["network", [settings.network.access, ...settings.network.hosts].join(" ")],
    ["queue_time", `${settings.queueTimeMs / 1_000}s`],
    ["retention", `${settings.retentionMs / 1_000}s`],
    [
      "requires",
      Object.entries(settings.requires)
        .map((label) => label.join("="))
        .join(" "),
    ],
    ["place", settings.place],
  ];
  const old = new Map(shown(before));
  const changed = shown(after).filter(([name, value]) => old.get(name) !== value);
  const { env } = after.settings;
  return {
    ...Object.fromEntries(changed),
    ...(JSON.stringify(env) !== JSON.stringify(before.settings.env) && {
      env: Object.keys(env).join(" "),
    }),
  };
}
