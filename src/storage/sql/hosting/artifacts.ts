/**
 * Artifacts and their files. All changes require the organization's lock, so
 * that one transaction at a time decides whether a file is used, usable or
 * swept.
 */

import type { ArtifactFile, EndpointSummary, NewArtifact } from "../../hosting/revisions.ts";
import { type Operation, pieces, placeholders, query } from "../operation.ts";

/**
 * How long an unused file of an artifact is kept: a deploy uploads first and makes the
 * revision then.
 */
const UNUSED_FILE_TTL_MS = 3_600_000;

/** Digests of files in one statement. */
const MAX_DIGESTS_PER_STATEMENT = 500;

/**
 * Splits digests into pieces of equal length (the last one is padded), so that
 * all share one statement text.
 */
export function digestPieces(sha256: readonly string[]): string[][] {
  return pieces(sha256, MAX_DIGESTS_PER_STATEMENT).map((piece) => [
    ...piece,
    ...Array<string>(MAX_DIGESTS_PER_STATEMENT - piece.length).fill(""),
  ]);
}

export const DIGESTS = placeholders(1, MAX_DIGESTS_PER_STATEMENT);

type Adding =
  | { readonly outcome: "added" }
  | { readonly outcome: "files_missing" | "sizes_differ"; readonly files: readonly string[] };

/** Adds an artifact to the organization, if all its files exist. */
export function* addArtifact(
  organizationId: string,
  { digest, index, endpoints, files, models = [] }: NewArtifact,
): Operation<Adding> {
  const [there] = yield* query(
    "SELECT 1 AS there FROM artifacts WHERE organization_id = ? AND digest = ?",
    organizationId,
    digest,
  );
  if (there !== undefined) {
    return { outcome: "added" };
  }
  const digests = [...new Set(files.map(({ sha256 }) => sha256))];
  const sizes = yield* sizesOf(organizationId, digests);
  const fault = faultOf(files, sizes);
  if (fault !== undefined) {
    return fault;
  }
  yield* query(
    `INSERT INTO artifacts (organization_id, digest, index_text, endpoints, files, size_bytes)
     VALUES (?, ?, ?, ?, ?, ?)`,
    organizationId,
    digest,
    index,
    JSON.stringify(
      endpoints.map(
        ({ name, kind, requires, place, byKey }): EndpointSummary => ({
          ...{ name, kind },
          ...(requires && { requires }),
          ...(place && { place }),
          ...(byKey && { byKey }),
        }),
      ),
    ),
    files.length,
    files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
  );
  for (const model of new Set(models)) {
    yield* query(
      "INSERT INTO artifact_models (organization_id, digest, model_digest) VALUES (?, ?, ?)",
      organizationId,
      digest,
      model,
    );
  }
  for (const piece of digestPieces(digests)) {
    yield* query(
      `INSERT INTO artifact_references (organization_id, digest, blob_id)
       SELECT organization_id, ?, blob_id FROM artifact_files
       WHERE organization_id = ? AND state = 'ready' AND sha256 IN ${DIGESTS}`,
      digest,
      organizationId,
      ...piece,
    );
    yield* query(
      `UPDATE artifact_files SET reference_count = reference_count + 1, delete_after_ms = NULL
       WHERE organization_id = ? AND state = 'ready' AND sha256 IN ${DIGESTS}`,
      organizationId,
      ...piece,
    );
  }
  return { outcome: "added" };
}

/** Sizes of usable files, by digest. */
function* sizesOf(
  organizationId: string,
  digests: readonly string[],
): Operation<Map<string, number>> {
  const sizes = new Map<string, number>();
  for (const piece of digestPieces(digests)) {
    const rows = yield* query<{ sha256: string; size_bytes: number }>(
      `SELECT sha256, size_bytes FROM artifact_files
       WHERE organization_id = ? AND state = 'ready' AND sha256 IN ${DIGESTS}`,
      organizationId,
      ...piece,
    );
    for (const { sha256, size_bytes } of rows) {
      sizes.set(sha256, size_bytes);
    }
  }
  return sizes;
}

function faultOf(
  files: readonly ArtifactFile[],
  sizes: ReadonlyMap<string, number>,
): Adding | undefined {
  const digests = (of: (file: ArtifactFile) => boolean): string[] => [
    ...new Set(files.filter(of).map(({ sha256 }) => sha256)),
  ];
  const missing = digests(({ sha256 }) => !sizes.has(sha256));
  if (missing.length > 0) {
    return { outcome: "files_missing", files: missing };
  }
  const others = digests(({ sha256, sizeBytes }) => sizes.get(sha256) !== sizeBytes);
  return others.length > 0 ? { outcome: "sizes_differ", files: others } : undefined;
}

/** The digests that no ready version of a model has. */
export function* missingModels(
  organizationId: string,
  models: readonly string[],
): Operation<readonly string[]> {
  const missing: string[] = [];
  for (const digest of new Set(models)) {
    const [there] = yield* query(
      `SELECT 1 AS there FROM model_versions
       WHERE organization_id = ? AND digest = ? AND state = 'ready' LIMIT 1`,
      organizationId,
      digest,
    );
    if (there === undefined) {
      missing.push(digest);
    }
  }
  return missing;
}

/** The names of the deployments whose kept revisions have a version of a model, sorted. */
export function* deploymentsWith(
  organizationId: string,
  modelDigest: string,
): Operation<readonly string[]> {
  const rows = yield* query<{ name: string }>(
    `SELECT DISTINCT d.name FROM artifact_models m
     JOIN revisions r ON r.organization_id = m.organization_id AND r.digest = m.digest
     JOIN deployments d
       ON d.organization_id = r.organization_id AND d.deployment_id = r.deployment_id
     WHERE m.organization_id = ? AND m.model_digest = ? ORDER BY d.name`,
    organizationId,
    modelDigest,
  );
  return rows.map(({ name }) => name);
}

/** Deletes those of the artifacts that no revision and no model uses any more. */
export function* dropArtifacts(
  organizationId: string,
  digests: readonly string[],
  nowMs: number,
): Operation<void> {
  for (const digest of new Set(digests)) {
    const [used] = yield* query(
      `SELECT 1 AS used FROM revisions WHERE organization_id = ? AND digest = ?
       UNION ALL SELECT 1 FROM model_versions WHERE organization_id = ? AND digest = ? LIMIT 1`,
      organizationId,
      digest,
      organizationId,
      digest,
    );
    if (used === undefined) {
      yield* query(
        `UPDATE artifact_files SET reference_count = reference_count - 1,
           delete_after_ms = CASE WHEN reference_count <= 1 THEN CAST(? AS bigint) END
         WHERE organization_id = ? AND blob_id IN (
           SELECT blob_id FROM artifact_references WHERE organization_id = ? AND digest = ?)`,
        nowMs + UNUSED_FILE_TTL_MS,
        organizationId,
        organizationId,
        digest,
      );
      for (const table of ["artifact_references", "artifact_models", "artifacts"]) {
        yield* query(
          `DELETE FROM ${table} WHERE organization_id = ? AND digest = ?`,
          organizationId,
          digest,
        );
      }
    }
  }
}
