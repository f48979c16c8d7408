/** Reads the desired state of deployments for nodes. */
import type { Page } from "../../accounts/page.ts";
import type { HostingStorage } from "../../hosting/hosting.ts";
import type { DesiredDeployment } from "../../hosting/revisions.ts";
import {
  DEPLOYMENT_COLUMNS,
  type DeploymentRow,
  toDeployment,
} from "../accounts/deployment-rows.ts";
import { toPage } from "../accounts/rows.ts";
import { type Operation, query } from "../operation.ts";

interface HostedRow extends DeploymentRow {
  readonly digest: string | null;
  readonly secrets_confirmed: number;
  readonly made_of: string | null;
  readonly format: number | null;
  readonly files_only: number | null;
}

const OF_TARGET = `FROM revisions r WHERE r.organization_id = d.organization_id
       AND r.deployment_id = d.deployment_id AND r.revision = d.target_revision`;

/** What is of the target revision is looked up per row by key. */
const SELECT = `SELECT ${DEPLOYMENT_COLUMNS},
    (SELECT r.digest ${OF_TARGET}) AS digest,
    (SELECT CAST(count(r.secrets_confirmed_by) AS integer) ${OF_TARGET}) AS secrets_confirmed,
    m.made_of, m.format, m.files_only
  FROM deployments d JOIN organizations o ON o.organization_id = d.organization_id
    LEFT JOIN manifests m ON m.organization_id = d.organization_id AND m.deployment_id = d.deployment_id`;

function toHosted(row: HostedRow): DesiredDeployment {
  const { made_of: madeOf, format, files_only } = row;
  return {
    ...toDeployment(row),
    digest: row.digest ?? undefined,
    secretsConfirmed: row.secrets_confirmed === 1,
    ...(madeOf !== null &&
      format !== null && { manifest: { madeOf, format, filesOnly: files_only === 1 } }),
  };
}

export function* getHosted({
  deploymentId,
}: Parameters<HostingStorage["getHosted"]>[0]): Operation<DesiredDeployment | undefined> {
  const [row] = yield* query<HostedRow>(`${SELECT} WHERE d.deployment_id = ?`, deploymentId);
  return row && toHosted(row);
}

export function* listHosted({
  limit,
  after = "",
}: Parameters<HostingStorage["listHosted"]>[0]): Operation<Page<DesiredDeployment>> {
  const rows = yield* query<HostedRow>(
    `${SELECT} WHERE d.deployment_id > ? ORDER BY d.deployment_id LIMIT ?`,
    after,
    limit + 1,
  );
  return toPage(rows.map(toHosted), limit, ({ deploymentId }) => deploymentId);
}
