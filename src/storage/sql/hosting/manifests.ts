/** Manifests of deployments: stores and reads what a worker has told. */
import type { HostingStorage } from "../../hosting/hosting.ts";
import type { StoredManifest } from "../../hosting/manifests.ts";
import { type Operation, query } from "../operation.ts";

export function* storeManifest({
  organizationId,
  deploymentId,
  madeOf,
  format,
  filesOnly,
  manifest,
}: Parameters<HostingStorage["storeManifest"]>[0]): Operation<void> {
  yield* query(
    `INSERT INTO manifests (organization_id, deployment_id, made_of, format, files_only, manifest)
     SELECT organization_id, deployment_id, ?, CAST(? AS integer), CAST(? AS integer), ?
     FROM deployments WHERE organization_id = ? AND deployment_id = ?
     ON CONFLICT (organization_id, deployment_id) DO UPDATE
       SET made_of = excluded.made_of, format = excluded.format,
         files_only = excluded.files_only, manifest = excluded.manifest`,
    madeOf,
    format,
    filesOnly ? 1 : 0,
    manifest,
    organizationId,
    deploymentId,
  );
}

export function* getManifest({
  organizationId,
  deploymentId,
}: Parameters<HostingStorage["getManifest"]>[0]): Operation<StoredManifest | undefined> {
  const [row] = yield* query<{
    made_of: string;
    format: number;
    files_only: number;
    manifest: string;
  }>(
    `SELECT made_of, format, files_only, manifest FROM manifests
     WHERE organization_id = ? AND deployment_id = ?`,
    organizationId,
    deploymentId,
  );
  return (
    row && {
      madeOf: row.made_of,
      format: row.format,
      filesOnly: row.files_only === 1,
      manifest: row.manifest,
    }
  );
}
