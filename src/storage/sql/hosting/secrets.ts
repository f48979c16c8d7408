/** Stores and reads sealed secrets of deployments. */
import type { Page } from "../../accounts/page.ts";
import type { DeploymentKey } from "../../hosting/deployment-key.ts";
import type { HostingStorage } from "../../hosting/hosting.ts";
import type { SealedSecret } from "../../hosting/secrets.ts";
import { toPage } from "../accounts/rows.ts";
import { type Operation, query } from "../operation.ts";

interface SecretRow {
  readonly organization_id: string;
  readonly deployment_id: string;
  readonly name: string;
  readonly sealed: string;
}

const COLUMNS = "organization_id, deployment_id, name, sealed";

function toSecret(row: SecretRow): SealedSecret {
  const { organization_id: organizationId, deployment_id: deploymentId, name, sealed } = row;
  return { organizationId, deploymentId, name, sealed };
}

export function* getSecrets({
  organizationId,
  deploymentId,
}: DeploymentKey): Operation<SealedSecret[]> {
  const rows = yield* query<SecretRow>(
    `SELECT ${COLUMNS} FROM deployment_secrets
     WHERE organization_id = ? AND deployment_id = ? ORDER BY name`,
    organizationId,
    deploymentId,
  );
  return rows.map(toSecret);
}

export function* secretNames(deployment: DeploymentKey): Operation<string[]> {
  return (yield* getSecrets(deployment)).map(({ name }) => name);
}

/** Removes and sets secrets; a secret in both lists is set. */
export function* storeSecrets({
  organizationId,
  deploymentId,
  secrets = {},
  removeSecrets = [],
}: Parameters<HostingStorage["createRevision"]>[0]): Operation<void> {
  for (const name of removeSecrets) {
    yield* query(
      "DELETE FROM deployment_secrets WHERE organization_id = ? AND deployment_id = ? AND name = ?",
      organizationId,
      deploymentId,
      name,
    );
  }
  for (const [name, sealed] of Object.entries(secrets)) {
    yield* query(
      `INSERT INTO deployment_secrets (${COLUMNS}) VALUES (?, ?, ?, ?)
       ON CONFLICT (organization_id, deployment_id, name) DO UPDATE SET sealed = excluded.sealed`,
      organizationId,
      deploymentId,
      name,
      sealed,
    );
  }
}

/** The key of a row as one text; ids and names contain no slash. */
const keyOf = (secret: SealedSecret): string =>
  [secret.organizationId, secret.deploymentId, secret.name].join("/");

export function* listSealedSecrets({
  limit,
  after = "//",
}: Parameters<HostingStorage["listSealedSecrets"]>[0]): Operation<Page<SealedSecret>> {
  const rows = yield* query<SecretRow>(
    `SELECT ${COLUMNS} FROM deployment_secrets
     WHERE (organization_id, deployment_id, name) > (?, ?, ?)
     ORDER BY organization_id, deployment_id, name LIMIT ?`,
    ...after.split("/"),
    limit + 1,
  );
  return toPage(rows.map(toSecret), limit, keyOf);
}

export function* replaceSealedSecret({
  organizationId,
  deploymentId,
  name,
  from,
  to,
}: Parameters<HostingStorage["replaceSealedSecret"]>[0]): Operation<void> {
  yield* query(
    `UPDATE deployment_secrets SET sealed = ?
     WHERE organization_id = ? AND deployment_id = ? AND name = ? AND sealed = ?`,
    to,
    organizationId,
    deploymentId,
    name,
    from,
  );
}
