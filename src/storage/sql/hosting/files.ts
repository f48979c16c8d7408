/** The registry of artifact files: finds, registers, finishes and sweeps them. */
import type { ArtifactFiles, StorageUse } from "../../hosting/files.ts";
import type { HostingStorage } from "../../hosting/hosting.ts";
import type { ArtifactFile } from "../../hosting/revisions.ts";
import { lockOrganization } from "../accounts/locks.ts";
import { type Operation, placeholders, query } from "../operation.ts";
import { DIGESTS, digestPieces } from "./artifacts.ts";

export function* findMissingFiles({
  organizationId,
  sha256,
  keptUntilMs,
}: Parameters<HostingStorage["findMissingFiles"]>[0]): Operation<string[]> {
  yield* lockOrganization(organizationId);
  const missing = new Set(sha256);
  for (const piece of digestPieces([...missing])) {
    const rows = yield* query<{ sha256: string }>(
      `SELECT sha256 FROM artifact_files
       WHERE organization_id = ? AND state = 'ready' AND sha256 IN ${DIGESTS}`,
      organizationId,
      ...piece,
    );
    yield* query(
      `UPDATE artifact_files SET delete_after_ms = ?
       WHERE organization_id = ? AND state = 'ready' AND sha256 IN ${DIGESTS}
         AND delete_after_ms < ?`,
      keptUntilMs,
      organizationId,
      ...piece,
      keptUntilMs,
    );
    for (const row of rows) {
      missing.delete(row.sha256);
    }
  }
  return [...missing];
}

export function* registerFile({
  organizationId,
  blobId,
  sha256,
  sizeBytes,
  keptUntilMs,
  maxBytes,
}: Parameters<HostingStorage["registerFile"]>[0]): Operation<
  Awaited<ReturnType<ArtifactFiles["registerFile"]>>
> {
  yield* lockOrganization(organizationId);
  const [there] = yield* query(
    `UPDATE artifact_files SET delete_after_ms = CASE
       WHEN delete_after_ms < ? THEN CAST(? AS bigint) ELSE delete_after_ms END
     WHERE organization_id = ? AND state = 'ready' AND sha256 = ? RETURNING blob_id`,
    keptUntilMs,
    keptUntilMs,
    organizationId,
    sha256,
  );
  if (there !== undefined) {
    return { outcome: "there" };
  }
  const [usage] = yield* query<{ size_bytes: number }>(
    "SELECT size_bytes FROM artifact_usage WHERE organization_id = ?",
    organizationId,
  );
  if ((usage?.size_bytes ?? 0) + sizeBytes > maxBytes) {
    return { outcome: "limit" };
  }
  yield* addUsage(organizationId, sizeBytes);
  yield* query(
    `INSERT INTO artifact_files (organization_id, blob_id, sha256, size_bytes, state, delete_after_ms)
     VALUES (?, ?, ?, ?, 'uploading', ?)`,
    organizationId,
    blobId,
    sha256,
    sizeBytes,
    keptUntilMs,
  );
  return { outcome: "registered" };
}

function* addUsage(organizationId: string, bytes: number): Operation<void> {
  yield* query(
    `INSERT INTO artifact_usage (organization_id, size_bytes) VALUES (?, ?)
     ON CONFLICT (organization_id) DO UPDATE
       SET size_bytes = artifact_usage.size_bytes + excluded.size_bytes`,
    organizationId,
    bytes,
  );
}

/** Marks an upload as finished. Of two finished uploads of one file, the first one counts. */
export function* finishFile({
  organizationId,
  blobId,
  keptUntilMs,
  sha256,
}: Parameters<HostingStorage["finishFile"]>[0]): Operation<
  Awaited<ReturnType<ArtifactFiles["finishFile"]>>
> {
  yield* lockOrganization(organizationId);
  if (sha256 !== undefined) {
    yield* query(
      `UPDATE artifact_files SET sha256 = ?
       WHERE organization_id = ? AND blob_id = ? AND state = 'uploading'`,
      sha256,
      organizationId,
      blobId,
    );
  }
  const [file] = yield* query<{ sha256: string; state: string }>(
    "SELECT sha256, state FROM artifact_files WHERE organization_id = ? AND blob_id = ?",
    organizationId,
    blobId,
  );
  if (file === undefined || file.state === "dying") {
    return { outcome: "gone" };
  }
  yield* query(
    `UPDATE artifact_files SET state = 'ready', delete_after_ms = ?
     WHERE organization_id = ? AND blob_id = ? AND state = 'uploading' AND NOT EXISTS (
       SELECT 1 FROM artifact_files other
       WHERE other.organization_id = ? AND other.state = 'ready' AND other.sha256 = ?)`,
    keptUntilMs,
    organizationId,
    blobId,
    organizationId,
    file.sha256,
  );
  // Another one finished first: the bytes of this one count no longer than until they are swept.
  yield* query(
    `UPDATE artifact_files SET delete_after_ms = 0
     WHERE organization_id = ? AND blob_id = ? AND state = 'uploading'`,
    organizationId,
    blobId,
  );
  // Extends the time of the file that counts.
  yield* query(
    `UPDATE artifact_files SET delete_after_ms = ?
     WHERE organization_id = ? AND state = 'ready' AND sha256 = ? AND delete_after_ms < ?`,
    keptUntilMs,
    organizationId,
    file.sha256,
    keptUntilMs,
  );
  return { outcome: "finished" };
}

export function* findFile({
  organizationId,
  sha256,
}: Parameters<HostingStorage["findFile"]>[0]): Operation<{ readonly blobId: string } | undefined> {
  const [row] = yield* query<{ blob_id: string }>(
    `SELECT blob_id FROM artifact_files
     WHERE organization_id = ? AND state = 'ready' AND sha256 = ?`,
    organizationId,
    sha256,
  );
  return row && { blobId: row.blob_id };
}

export function* abandonFile({
  organizationId,
  blobId,
  nowMs,
}: Parameters<HostingStorage["abandonFile"]>[0]): Operation<void> {
  yield* lockOrganization(organizationId);
  const [file] = yield* query<{ size_bytes: number }>(
    `SELECT size_bytes FROM artifact_files
     WHERE organization_id = ? AND blob_id = ? AND state = 'uploading'`,
    organizationId,
    blobId,
  );
  if (file === undefined) {
    return;
  }
  yield* addUsage(organizationId, -file.size_bytes);
  yield* query(
    `UPDATE artifact_files SET delete_after_ms = ?, size_bytes = 0
     WHERE organization_id = ? AND blob_id = ? AND state = 'uploading'`,
    nowMs,
    organizationId,
    blobId,
  );
}

export function* listArtifactFiles({
  organizationId,
  digest,
  sha256,
}: Parameters<HostingStorage["listArtifactFiles"]>[0]): Operation<
  (ArtifactFile & { readonly blobId: string })[]
> {
  const rows = yield* query<{ sha256: string; size_bytes: number; blob_id: string }>(
    `SELECT f.sha256, f.size_bytes, f.blob_id
     FROM artifact_references r JOIN artifact_files f
       ON f.organization_id = r.organization_id || '' AND f.blob_id = r.blob_id
     WHERE r.organization_id = ? AND r.digest = ?${sha256 === undefined ? "" : " AND f.sha256 = ?"}`,
    organizationId,
    digest,
    ...(sha256 === undefined ? [] : [sha256]),
  );
  return rows.map(({ sha256, size_bytes, blob_id }) => ({
    sha256,
    sizeBytes: size_bytes,
    blobId: blob_id,
  }));
}

export function* readStorageUse({
  organizationId,
  limit,
}: Parameters<HostingStorage["readStorageUse"]>[0]): Operation<StorageUse> {
  const [usage] = yield* query<{ used_bytes: number; unused_bytes: number }>(
    `SELECT CAST(coalesce(sum(size_bytes), 0) AS bigint) AS used_bytes,
       CAST(coalesce(sum(CASE WHEN reference_count = 0 THEN size_bytes ELSE 0 END), 0) AS bigint)
         AS unused_bytes
     FROM artifact_files WHERE organization_id = ?`,
    organizationId,
  );
  const [ofModels] = yield* query<{ bytes: number }>(
    `SELECT CAST(coalesce(sum(size_bytes), 0) AS bigint) AS bytes FROM artifact_files
     WHERE organization_id = ? AND blob_id IN (
       SELECT x.blob_id FROM model_versions v JOIN artifact_references x
         ON x.organization_id = v.organization_id || '' AND x.digest = v.digest
       WHERE v.organization_id = ?)`,
    organizationId,
    organizationId,
  );
  const deployments = yield* query<{ name: string; revisions: number; bytes: number }>(
    `WITH artifacts_of AS (
       SELECT deployment_id, digest, count(*) AS revisions
       FROM revisions WHERE organization_id = ? GROUP BY deployment_id, digest
     ), files_of AS (
       SELECT DISTINCT a.deployment_id, x.blob_id
       FROM artifacts_of a JOIN artifact_references x
         ON x.organization_id = ? AND x.digest = a.digest
     ), sizes AS (
       SELECT o.deployment_id, sum(f.size_bytes) AS bytes
       FROM files_of o JOIN artifact_files f ON f.organization_id = ? AND f.blob_id = o.blob_id
       GROUP BY o.deployment_id
     ), counts AS (
       SELECT deployment_id, sum(revisions) AS revisions FROM artifacts_of GROUP BY deployment_id
     )
     SELECT d.name, CAST(c.revisions AS bigint) AS revisions, CAST(s.bytes AS bigint) AS bytes
     FROM sizes s
     JOIN counts c ON c.deployment_id = s.deployment_id
     JOIN deployments d ON d.organization_id = ? AND d.deployment_id = s.deployment_id
     ORDER BY s.bytes DESC, d.name LIMIT ?`,
    organizationId,
    organizationId,
    organizationId,
    organizationId,
    limit,
  );
  return {
    usedBytes: usage?.used_bytes ?? 0,
    unusedBytes: usage?.unused_bytes ?? 0,
    modelBytes: ofModels?.bytes ?? 0,
    deployments,
  };
}

export function* takeUnusedFiles({
  nowMs,
  againMs,
  limit,
}: Parameters<HostingStorage["takeUnusedFiles"]>[0]): Operation<
  Awaited<ReturnType<ArtifactFiles["takeUnusedFiles"]>>
> {
  const [oldest] = yield* query<{ organization_id: string }>(
    `SELECT organization_id FROM artifact_files WHERE delete_after_ms <= ?
     ORDER BY delete_after_ms LIMIT 1`,
    nowMs,
  );
  if (oldest === undefined) {
    return undefined;
  }
  const organizationId = oldest.organization_id;
  yield* lockOrganization(organizationId);
  const rows = yield* query<{ blob_id: string }>(
    `UPDATE artifact_files SET state = 'dying', delete_after_ms = ?
     WHERE organization_id = ? AND blob_id IN (
       SELECT blob_id FROM artifact_files WHERE delete_after_ms <= ? AND organization_id = ?
       ORDER BY delete_after_ms LIMIT ?)
     RETURNING blob_id`,
    againMs,
    organizationId,
    nowMs,
    organizationId,
    limit,
  );
  return { organizationId, blobIds: rows.map(({ blob_id }) => blob_id) };
}

export function* forgetFiles({
  organizationId,
  blobIds,
}: Parameters<HostingStorage["forgetFiles"]>[0]): Operation<void> {
  yield* lockOrganization(organizationId);
  for (const piece of digestPieces(blobIds)) {
    const rows = yield* query<{ size_bytes: number }>(
      `DELETE FROM artifact_files
       WHERE organization_id = ? AND state = 'dying' AND blob_id IN ${placeholders(1, piece.length)}
       RETURNING size_bytes`,
      organizationId,
      ...piece,
    );
    yield* addUsage(
      organizationId,
      rows.reduce((sum, { size_bytes }) => sum - size_bytes, 0),
    );
  }
}
