/** Imports of models: asked for, claimed by a run, reported and ended. */

import type { HostingStorage } from "../../hosting/hosting.ts";
import type {
  ImportedFile,
  ModelImport,
  ModelStorage,
  ModelVersionKey,
  ModelVersionRecord,
} from "../../hosting/models.ts";
import { record } from "../accounts/audit.ts";
import { lockOrganization } from "../accounts/locks.ts";
import { type Operation, pieces, placeholders, query } from "../operation.ts";
import { addArtifact } from "./artifacts.ts";
import { addVersion, getModelVersion, isFull } from "./models.ts";

/** Files of an import in one statement. */
const MAX_FILES_PER_STATEMENT = 100;

const OF_VERSION = "organization_id = ? AND model = ? AND version = ?";

function valuesOf({ organizationId, model, version }: ModelVersionKey): (string | number)[] {
  return [organizationId, model, version];
}

export function* importModel(
  parameters: Parameters<HostingStorage["importModel"]>[0],
): Operation<Awaited<ReturnType<ModelStorage["importModel"]>>> {
  const { organizationId, model, source, pinned, commit } = parameters;
  yield* lockOrganization(organizationId);
  const [there] = yield* query<{ version: number; state: string }>(
    `SELECT version, state FROM model_versions
     WHERE organization_id = ? AND model = ? AND pinned = ? ORDER BY version DESC LIMIT 1`,
    organizationId,
    model,
    pinned,
  );
  if (there !== undefined && there.state !== "failed") {
    return found(yield* getModelVersion({ ...parameters, version: there.version }));
  }
  if (there === undefined && (yield* isFull(parameters))) {
    return { outcome: "limit" };
  }
  const { version } =
    there === undefined
      ? yield* addVersion(parameters, {
          ...parameters,
          ...{ state: "importing", digest: undefined, bytesDone: 0 },
        })
      : there;
  const key = { organizationId, model, version };
  if (there !== undefined) {
    yield* query(
      `UPDATE model_versions SET state = 'importing', reason = '', sealed_token = ?,
         claim = '', claimed_until_ms = 0, bytes_per_second = 0 WHERE ${OF_VERSION}`,
      parameters.sealedToken,
      ...valuesOf(key),
    );
  }
  yield* record(parameters, organizationId, {
    action: "model.import",
    subjectId: model,
    subject: model,
    details: {
      ...{ version: String(version), source, ...(commit !== "" && { commit }) },
      ...(parameters.tokenSecret !== undefined && { token_secret: parameters.tokenSecret }),
    },
  });
  return found(yield* getModelVersion(key));
}

function found(version: ModelVersionRecord | undefined): {
  readonly outcome: "found";
  readonly version: ModelVersionRecord;
} {
  if (version === undefined) {
    throw new Error("the version of a model that was just stored is not there");
  }
  return { outcome: "found", version };
}

export function* takeImport({
  claim,
  without,
  nowMs,
  ttlMs,
}: Parameters<HostingStorage["takeImport"]>[0]): Operation<ModelImport | undefined> {
  const [waiting] = yield* query<{
    organization_id: string;
    organization: string | null;
    model: string;
    version: number;
  }>(
    `WITH under_way AS (
       SELECT organization_id, count(*) AS count FROM model_versions
       WHERE state = 'importing' AND claimed_until_ms > ? GROUP BY organization_id)
     SELECT v.organization_id, o.name AS organization, v.model, v.version FROM model_versions v
       LEFT JOIN under_way u ON u.organization_id = v.organization_id
       LEFT JOIN organizations o ON o.organization_id = v.organization_id
     WHERE v.state = 'importing' AND v.claimed_until_ms <= ?
       ${without.length === 0 ? "" : `AND v.organization_id NOT IN ${placeholders(1, without.length)}`}
     ORDER BY coalesce(u.count, 0), v.claimed_until_ms, v.created_at_ms LIMIT 1`,
    nowMs,
    nowMs,
    ...without,
  );
  if (waiting === undefined) {
    return undefined;
  }
  const { organization_id: organizationId, model, version } = waiting;
  const key = { organizationId, model, version };
  // The condition is repeated: another node may have claimed it since it was read.
  const [row] = yield* query<{ source: string; pinned: string; sealed_token: string | null }>(
    `UPDATE model_versions SET claim = ?, claimed_until_ms = ?
     WHERE ${OF_VERSION} AND state = 'importing' AND claimed_until_ms <= ?
     RETURNING source, pinned, sealed_token`,
    claim,
    nowMs + ttlMs,
    ...valuesOf(key),
    nowMs,
  );
  return (
    row && {
      ...key,
      organization: waiting.organization ?? "",
      source: row.source,
      pinned: row.pinned,
      sealedToken: row.sealed_token ?? undefined,
    }
  );
}

export function* reportImport(
  parameters: Parameters<HostingStorage["reportImport"]>[0],
): Operation<boolean> {
  const { claim, nowMs, ttlMs, bytesDone, bytesPerSecond, stored } = parameters;
  const held = yield* query(
    `UPDATE model_versions SET claimed_until_ms = ?, bytes_done = ?, bytes_per_second = ?
     WHERE ${OF_VERSION} AND claim = ? AND state = 'importing' RETURNING version`,
    ttlMs === 0 ? 0 : nowMs + ttlMs,
    bytesDone,
    bytesPerSecond,
    ...valuesOf(parameters),
    claim,
  );
  if (held.length === 0) {
    return false;
  }
  for (const piece of pieces(stored, MAX_FILES_PER_STATEMENT)) {
    yield* query(
      `INSERT INTO model_imported_files
         (organization_id, model, version, path, sha256, size_bytes, origin)
       VALUES ${placeholders(piece.length, 7)}
       ON CONFLICT (organization_id, model, version, path)
         DO UPDATE SET sha256 = excluded.sha256, size_bytes = excluded.size_bytes`,
      ...piece.flatMap(({ path, sha256, sizeBytes, origin }) => [
        ...valuesOf(parameters),
        path,
        sha256,
        sizeBytes,
        origin,
      ]),
    );
  }
  return true;
}

export function* listImported(key: ModelVersionKey): Operation<ImportedFile[]> {
  const rows = yield* query<ImportedRow>(
    `SELECT path, sha256, size_bytes, origin FROM model_imported_files
     WHERE ${OF_VERSION} ORDER BY path`,
    ...valuesOf(key),
  );
  return rows.map(toImported);
}

interface ImportedRow {
  readonly path: string;
  readonly sha256: string;
  readonly size_bytes: number;
  readonly origin: string;
}

function toImported({ size_bytes: sizeBytes, path, sha256, origin }: ImportedRow): ImportedFile {
  return { path, sha256, sizeBytes, origin };
}

export function* findImported({
  organizationId,
  origin,
}: Parameters<HostingStorage["findImported"]>[0]): Operation<ImportedFile[]> {
  const [newest] = yield* query<{ model: string; version: number }>(
    `SELECT f.model, f.version FROM model_imported_files f JOIN model_versions v
       ON v.organization_id = f.organization_id || '' AND v.model = f.model
         AND v.version = f.version AND v.state = 'ready'
     WHERE f.organization_id = ? AND f.origin = ?
     ORDER BY f.model, f.version DESC LIMIT 1`,
    organizationId,
    origin,
  );
  if (newest === undefined) {
    return [];
  }
  const rows = yield* query<ImportedRow>(
    `SELECT path, sha256, size_bytes, origin FROM model_imported_files
     WHERE ${OF_VERSION} AND origin = ? ORDER BY path`,
    ...valuesOf({ ...newest, organizationId }),
    origin,
  );
  return rows.map(toImported);
}

export function* finishImport(
  parameters: Parameters<HostingStorage["finishImport"]>[0],
): Operation<Awaited<ReturnType<ModelStorage["finishImport"]>>> {
  const { organizationId, claim, artifact } = parameters;
  yield* lockOrganization(organizationId);
  const held = yield* query(
    `SELECT 1 AS held FROM model_versions WHERE ${OF_VERSION} AND claim = ? AND state = 'importing'`,
    ...valuesOf(parameters),
    claim,
  );
  if (held.length === 0) {
    return { outcome: "lost" };
  }
  const added = yield* addArtifact(organizationId, artifact);
  if (added.outcome !== "added") {
    return { outcome: added.outcome };
  }
  const sizeBytes = artifact.files.reduce((sum, file) => sum + file.sizeBytes, 0);
  yield* query(
    `UPDATE model_versions SET state = 'ready', digest = ?, size_bytes = ?, bytes_done = ?,
       bytes_per_second = 0, sealed_token = NULL WHERE ${OF_VERSION}`,
    artifact.digest,
    sizeBytes,
    sizeBytes,
    ...valuesOf(parameters),
  );
  return { outcome: "finished" };
}

export function* failImport(
  parameters: Parameters<HostingStorage["failImport"]>[0],
): Operation<void> {
  yield* query(
    `UPDATE model_versions SET state = 'failed', reason = ?, sealed_token = NULL,
       bytes_per_second = 0 WHERE ${OF_VERSION} AND claim = ? AND state = 'importing'`,
    parameters.reason,
    ...valuesOf(parameters),
    parameters.claim,
  );
}
