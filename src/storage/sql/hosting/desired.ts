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
}

const OF_TARGET = `FROM revisions r WHERE r.organization_id = d.organization_id
       AND r.deployment_id = d.deployment_id AND r.revision = d.target_revision`;

/** What is of the target revision is looked up per row by key. */
const SELECT = `SELECT ${DEPLOYMENT_COLUMNS},
    (SELECT r.digest ${OF_TARGET}) AS digest,
    (SELECT CAST(count(r.secrets_confirmed_by) AS integer) ${OF_TARGET}) AS secrets_confirmed
  FROM deployments d JOIN organizations o ON o.organization_id = d.organization_id`;

function toHosted(row: HostedRow): DesiredDeployment {
  return {
    ...toDeployment(row),
    digest: row.digest ?? undefined,
    secretsConfirmed: row.secrets_confirmed === 1,
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
