/** Models and their versions: pushed, listed and deleted. */
import type { Deed } from "../../accounts/deed.ts";
import type { Page } from "../../accounts/page.ts";
import type { HostingStorage } from "../../hosting/hosting.ts";
import type {
  ModelRecord,
  ModelState,
  ModelStorage,
  ModelVersionKey,
  ModelVersionRecord,
} from "../../hosting/models.ts";
import { record } from "../accounts/audit.ts";
import { lockOrganization } from "../accounts/locks.ts";
import { toPage } from "../accounts/rows.ts";
import { type Operation, query } from "../operation.ts";
import { addArtifact, deploymentsWith, dropArtifacts } from "./artifacts.ts";

interface VersionRow {
  readonly organization_id: string;
  readonly model: string;
  readonly version: number;
  readonly state: ModelState;
  readonly digest: string | null;
  readonly size_bytes: number;
  readonly files: number;
  readonly source: string;
  readonly repository: string;
  readonly commit_id: string;
  readonly created_at_ms: number;
  readonly created_by: string;
  readonly warnings: string;
  readonly reason: string;
  readonly bytes_done: number;
  readonly bytes_per_second: number;
}

const COLUMNS =
  "organization_id, model, version, state, digest, size_bytes, files, source, repository, " +
  "commit_id, created_at_ms, created_by, warnings, reason, bytes_done, bytes_per_second";

function toVersion(row: VersionRow, deployments: readonly string[] = []): ModelVersionRecord {
  return {
    organizationId: row.organization_id,
    model: row.model,
    version: row.version,
    state: row.state,
    digest: row.digest ?? undefined,
    sizeBytes: row.size_bytes,
    files: row.files,
    source: row.source,
    repository: row.repository,
    commit: row.commit_id,
    createdAtMs: row.created_at_ms,
    createdBy: row.created_by,
    warnings: JSON.parse(row.warnings) as string[],
    reason: row.reason,
    bytesDone: row.bytes_done,
    bytesPerSecond: row.bytes_per_second,
    deployments,
  };
}

export function* pushModel(
  parameters: Parameters<HostingStorage["pushModel"]>[0],
): Operation<Awaited<ReturnType<ModelStorage["pushModel"]>>> {
  const { organizationId, model, artifact, files, warnings } = parameters;
  yield* lockOrganization(organizationId);
  const [there] = yield* query<VersionRow>(
    `SELECT ${COLUMNS} FROM model_versions
     WHERE organization_id = ? AND model = ? AND digest = ? ORDER BY version DESC LIMIT 1`,
    organizationId,
    model,
    artifact.digest,
  );
  if (there !== undefined) {
    return { outcome: "pushed", version: toVersion(there) };
  }
  if (yield* isFull(parameters)) {
    return { outcome: "limit" };
  }
  const added = yield* addArtifact(organizationId, artifact);
  if (added.outcome !== "added") {
    return added;
  }
  const { digest } = artifact;
  const sizeBytes = artifact.files.reduce((sum, file) => sum + file.sizeBytes, 0);
  const version = yield* addVersion(parameters, {
    ...{ state: "ready", digest, sizeBytes, files, warnings, bytesDone: sizeBytes },
    ...{ source: "", pinned: "", repository: "", commit: "" },
  });
  yield* record(parameters, organizationId, {
    action: "model.push",
    subjectId: model,
    subject: model,
    details: { version: String(version.version), digest },
  });
  return { outcome: "pushed", version };
}

/** Whether the organization has room for another version of the model. */
export function* isFull({
  organizationId,
  model,
  maxModels,
  maxVersions,
}: {
  readonly organizationId: string;
  readonly model: string;
  readonly maxModels: number;
  readonly maxVersions: number;
}): Operation<boolean> {
  const [others] = yield* query<{ count: number }>(
    "SELECT count(*) AS count FROM models WHERE organization_id = ? AND name <> ?",
    organizationId,
    model,
  );
  const [versions] = yield* query<{ count: number }>(
    "SELECT count(*) AS count FROM model_versions WHERE organization_id = ? AND model = ?",
    organizationId,
    model,
  );
  return (others?.count ?? 0) >= maxModels || (versions?.count ?? 0) >= maxVersions;
}

type NewVersion = Pick<
  ModelVersionRecord,
  | "state"
  | "digest"
  | "sizeBytes"
  | "files"
  | "source"
  | "repository"
  | "commit"
  | "warnings"
  | "bytesDone"
> & { readonly pinned: string; readonly sealedToken?: string | undefined };

/** Adds the next version, and the model if it is not there. */
export function* addVersion(
  { organizationId, model, nowMs, by }: Deed & { organizationId: string; model: string },
  added: NewVersion,
): Operation<ModelVersionRecord> {
  const [row] = yield* query<{ last_version: number }>(
    `INSERT INTO models (organization_id, name, created_at_ms, last_version) VALUES (?, ?, ?, 1)
     ON CONFLICT (organization_id, name) DO UPDATE SET last_version = models.last_version + 1
     RETURNING last_version`,
    organizationId,
    model,
    nowMs,
  );
  const [version] = yield* query<VersionRow>(
    `INSERT INTO model_versions (${COLUMNS}, pinned, sealed_token, claim, claimed_until_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', ?, 0, ?, ?, '', 0) RETURNING ${COLUMNS}`,
    organizationId,
    model,
    row?.last_version ?? 1,
    added.state,
    added.digest,
    added.sizeBytes,
    added.files,
    added.source,
    added.repository,
    added.commit,
    nowMs,
    by.name,
    JSON.stringify(added.warnings),
    added.bytesDone,
    added.pinned,
    added.sealedToken,
  );
  if (version === undefined) {
    throw new Error(`no row of the new version of model ${model} came back`);
  }
  return toVersion(version);
}

export function* getModelVersion({
  organizationId,
  model,
  version,
}: ModelVersionKey): Operation<ModelVersionRecord | undefined> {
  const [row] = yield* query<VersionRow>(
    `SELECT ${COLUMNS} FROM model_versions
     WHERE organization_id = ? AND model = ? AND version = ?`,
    organizationId,
    model,
    version,
  );
  return (
    row && toVersion(row, row.digest ? yield* deploymentsWith(organizationId, row.digest) : [])
  );
}

interface ModelRow {
  readonly name: string;
  readonly created_at_ms: number;
}

export function* listModels({
  organizationId,
  limit,
  after = "",
  versions,
}: Parameters<HostingStorage["listModels"]>[0]): Operation<Page<ModelRecord>> {
  const rows = yield* query<ModelRow>(
    `SELECT name, created_at_ms FROM models WHERE organization_id = ? AND name > ?
     ORDER BY name LIMIT ?`,
    organizationId,
    after,
    limit + 1,
  );
  const page = toPage(rows, limit, ({ name }) => name);
  return { items: yield* withVersions(organizationId, page.items, versions), next: page.next };
}

export function* getModel({
  organizationId,
  model,
  versions,
}: Parameters<HostingStorage["getModel"]>[0]): Operation<ModelRecord | undefined> {
  const rows = yield* query<ModelRow>(
    "SELECT name, created_at_ms FROM models WHERE organization_id = ? AND name = ?",
    organizationId,
    model,
  );
  const [found] = yield* withVersions(organizationId, rows, versions);
  return found;
}

/** The models, which follow one another by name, with the newest versions of each. */
function* withVersions(
  organizationId: string,
  models: readonly ModelRow[],
  limit: number,
): Operation<ModelRecord[]> {
  const rows = yield* query<VersionRow & { readonly versions: number }>(
    `SELECT * FROM (
       SELECT ${COLUMNS}, row_number() OVER (PARTITION BY model ORDER BY version DESC) AS place,
         count(*) OVER (PARTITION BY model) AS versions
       FROM model_versions WHERE organization_id = ? AND model >= ? AND model <= ?
     ) AS numbered
     WHERE place <= ? ORDER BY model, version DESC`,
    organizationId,
    models.at(0)?.name ?? "",
    models.at(-1)?.name ?? "",
    limit,
  );
  const used = new Map<string, readonly string[]>();
  for (const digest of new Set(rows.flatMap((row) => row.digest ?? []))) {
    used.set(digest, yield* deploymentsWith(organizationId, digest));
  }
  const byModel = Map.groupBy(rows, ({ model }) => model);
  return models.map(({ name, created_at_ms: createdAtMs }) => {
    const ofModel = byModel.get(name) ?? [];
    const versionCount = ofModel[0]?.versions ?? 0;
    const all = ofModel.map((row) => toVersion(row, used.get(row.digest ?? "")));
    return { name, createdAtMs, versionCount, versions: all };
  });
}

export function* deleteModel(
  parameters: Parameters<HostingStorage["deleteModel"]>[0],
): Operation<Awaited<ReturnType<ModelStorage["deleteModel"]>>> {
  const { organizationId, model, version, nowMs } = parameters;
  yield* lockOrganization(organizationId);
  const isAsked = version === undefined ? "version > ?" : "version = ?";
  const ofModel = [organizationId, model, version ?? 0];
  const kept = yield* query<{ digest: string }>(
    `SELECT DISTINCT digest FROM model_versions
     WHERE organization_id = ? AND model = ? AND ${isAsked} AND digest IS NOT NULL`,
    ...ofModel,
  );
  const deployments = new Set<string>();
  for (const { digest } of kept) {
    for (const name of yield* deploymentsWith(organizationId, digest)) {
      deployments.add(name);
    }
  }
  if (deployments.size > 0) {
    return { outcome: "in_use", deployments: [...deployments].sort() };
  }
  const deleted = yield* query<{ version: number; digest: string | null }>(
    `DELETE FROM model_versions WHERE organization_id = ? AND model = ? AND ${isAsked}
     RETURNING version, digest`,
    ...ofModel,
  );
  if (deleted.length === 0) {
    return { outcome: "not_found" };
  }
  yield* query(
    `DELETE FROM model_imported_files WHERE organization_id = ? AND model = ? AND ${isAsked}`,
    ...ofModel,
  );
  yield* query(
    `DELETE FROM models WHERE organization_id = ? AND name = ? AND NOT EXISTS (
       SELECT 1 FROM model_versions WHERE organization_id = ? AND model = ?)`,
    organizationId,
    model,
    organizationId,
    model,
  );
  yield* dropArtifacts(
    organizationId,
    deleted.flatMap(({ digest }) => digest ?? []),
    nowMs,
  );
  yield* record(parameters, organizationId, {
    action: "model.delete",
    subjectId: model,
    subject: model,
    details: {
      versions: deleted
        .map((one) => one.version)
        .sort((a, b) => a - b)
        .join(" "),
    },
  });
  return { outcome: "deleted" };
}
