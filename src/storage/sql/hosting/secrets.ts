/**
 * Stores and reads sealed secrets of deployments.
 *
 * A worker reads its secrets, so the author of its code reads them, and
 * the author of a variable may choose where confirmed code sends them. A
 * caller who may not use the secrets therefore leaves a mark with what they
 * change: a revision that nobody confirmed, or `secrets_since` for variables
 * and secrets. Where a mark stands, only secrets that came with that very
 * change are given, by the version of the deployment: their setter knew them.
 */
import type { Deed } from "../../accounts/deed.ts";
import type { Page } from "../../accounts/page.ts";
import type { DeploymentKey } from "../../hosting/deployment-key.ts";
import type { HostingStorage } from "../../hosting/hosting.ts";
import type {
  RevisionSecrets,
  SealedSecret,
  SecretRecord,
  SecretStorage,
  SecretsUpdate,
} from "../../hosting/secrets.ts";
import { record } from "../accounts/audit.ts";
import { announce } from "../accounts/changes.ts";
import { secretsSince, storeDeployment } from "../accounts/deployment-rows.ts";
import { findDeployment } from "../accounts/deployments.ts";
import { lockOrganization } from "../accounts/locks.ts";
import { toPage } from "../accounts/rows.ts";
import { type Operation, placeholders, query } from "../operation.ts";

interface SecretRow {
  readonly organization_id: string;
  readonly deployment_id: string;
  readonly name: string;
  readonly sealed: string;
}

/**
 * Whether a revision `r` of a deployment `d` has a secret `s`; null for a
 * revision that is not stored any more.
 */
const IS_GIVEN = `(d.secrets_since = 0 OR s.version = d.secrets_since)
    AND (r.secrets_confirmed_by IS NOT NULL OR s.version = r.version)`;

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

export function* getRevisionSecrets({
  organizationId,
  deploymentId,
  revision,
}: Parameters<HostingStorage["getRevisionSecrets"]>[0]): Operation<RevisionSecrets> {
  const rows = yield* query<SecretRow & { readonly is_given: number }>(
    `SELECT s.organization_id, s.deployment_id, s.name, s.sealed,
       CASE WHEN ${IS_GIVEN} THEN 1 ELSE 0 END AS is_given
     FROM deployment_secrets s
       JOIN deployments d ON d.organization_id = s.organization_id || ''
         AND d.deployment_id = s.deployment_id
       LEFT JOIN revisions r ON r.organization_id = s.organization_id || ''
         AND r.deployment_id = s.deployment_id AND r.revision = ?
     WHERE s.organization_id = ? AND s.deployment_id = ? ORDER BY s.name`,
    revision,
    organizationId,
    deploymentId,
  );
  return {
    given: rows.filter((row) => row.is_given === 1).map(toSecret),
    withheld: rows.filter((row) => row.is_given === 0).map(({ name }) => name),
  };
}

export interface SecretNames {
  readonly all: string[];
  /** Those that the target revision does not have. */
  readonly withheld: string[];
}

/** The names of the secrets of deployments, sorted, by deployment. */
export function* secretNamesOf(
  organizationId: string,
  deploymentIds: readonly string[],
): Operation<Map<string, SecretNames>> {
  const found = new Map<string, SecretNames>();
  const rows = yield* query<{ deployment_id: string; name: string; is_given: number }>(
    `SELECT s.deployment_id, s.name, CASE WHEN ${IS_GIVEN} THEN 1 ELSE 0 END AS is_given
     FROM deployment_secrets s
       JOIN deployments d ON d.organization_id = s.organization_id || ''
         AND d.deployment_id = s.deployment_id
       LEFT JOIN revisions r ON r.organization_id = s.organization_id || ''
         AND r.deployment_id = s.deployment_id AND r.revision = d.target_revision
     WHERE s.organization_id = ? AND s.deployment_id IN ${placeholders(1, deploymentIds.length)}
     ORDER BY s.deployment_id, s.name`,
    organizationId,
    ...deploymentIds,
  );
  for (const { deployment_id: id, name, is_given } of rows) {
    const names = found.get(id) ?? { all: [], withheld: [] };
    found.set(id, names);
    names.all.push(name);
    if (is_given === 0) {
      names.withheld.push(name);
    }
  }
  return found;
}

export function* listSecrets({
  organizationId,
  deploymentId,
}: DeploymentKey): Operation<SecretRecord[]> {
  const names = (yield* secretNamesOf(organizationId, [deploymentId])).get(deploymentId);
  const rows = yield* query<{ name: string; set_at_ms: number; set_by: string }>(
    `SELECT name, set_at_ms, set_by FROM deployment_secrets
     WHERE organization_id = ? AND deployment_id = ? ORDER BY name`,
    organizationId,
    deploymentId,
  );
  return rows.map(({ name, set_at_ms: setAtMs, set_by: setBy }) => {
    return { name, setAtMs, setBy, withheld: names?.withheld.includes(name) ?? false };
  });
}

/** For the audit log: the secrets that the target revision of a deployment does not have. */
export function* withheldDetail({
  organizationId,
  deploymentId,
}: DeploymentKey): Operation<{ readonly secrets_withheld?: string }> {
  const names = (yield* secretNamesOf(organizationId, [deploymentId])).get(deploymentId);
  const withheld = names?.withheld ?? [];
  return withheld.length === 0 ? {} : { secrets_withheld: withheld.join(" ") };
}

function* secretNames(deployment: DeploymentKey): Operation<string[]> {
  return (yield* getSecrets(deployment)).map(({ name }) => name);
}

/** What an update would do to the secrets that are there. */
interface SecretsChange {
  readonly changes: boolean;
  readonly tooMany: boolean;
}

export function* changeOfSecrets(
  deployment: DeploymentKey,
  { secrets = {}, removeSecrets = [], maxSecrets }: SecretsUpdate,
): Operation<SecretsChange> {
  const there = yield* secretNames(deployment);
  const set = Object.keys(secrets);
  const left = new Set([...there.filter((name) => !removeSecrets.includes(name)), ...set]);
  return {
    changes: set.length > 0 || there.some((name) => !left.has(name)),
    tooMany: left.size > maxSecrets,
  };
}

/** For the audit log: the names of the secrets that an update sets and removes. */
export function secretDetails({ secrets = {}, removeSecrets = [] }: SecretsUpdate) {
  const names = Object.keys(secrets);
  return {
    ...(names.length > 0 && { secrets: names.join(" ") }),
    ...(removeSecrets.length > 0 && { removed_secrets: removeSecrets.join(" ") }),
  };
}

/** Removes and sets secrets at this version of the deployment; a secret in both lists is set. */
export function* storeSecrets(
  {
    organizationId,
    deploymentId,
    secrets = {},
    removeSecrets = [],
    nowMs,
    by,
  }: Omit<Deed, "eventId"> & DeploymentKey & SecretsUpdate,
  version: number,
): Operation<void> {
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
      `INSERT INTO deployment_secrets (${COLUMNS}, version, set_at_ms, set_by)
       VALUES (?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (organization_id, deployment_id, name)
         DO UPDATE SET sealed = excluded.sealed, version = excluded.version,
           set_at_ms = excluded.set_at_ms, set_by = excluded.set_by`,
      organizationId,
      deploymentId,
      name,
      sealed,
      version,
      nowMs,
      by.name,
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

/** Confirms that what was changed by callers who may not use a deployment's secrets may have them. */
export function* confirmSecrets(
  parameters: Parameters<HostingStorage["confirmSecrets"]>[0],
): Operation<Awaited<ReturnType<SecretStorage["confirmSecrets"]>>> {
  const { organizationId, name, nowMs, by } = parameters;
  yield* lockOrganization(organizationId);
  const before = yield* findDeployment({ organizationId, name });
  if (before === undefined) {
    return { outcome: "not_found" };
  }
  const { deploymentId, targetRevision } = before;
  if (targetRevision === undefined) {
    return { outcome: "no_revision" };
  }
  if (parameters.version !== before.version) {
    return { outcome: "version_conflict" };
  }
  const names = (yield* secretNamesOf(organizationId, [deploymentId])).get(deploymentId);
  const changed = yield* query<{ digest: string }>(
    `UPDATE revisions SET secrets_confirmed_by = ?, secrets_confirmed_at_ms = ?
     WHERE organization_id = ? AND deployment_id = ? AND revision = ?
       AND secrets_confirmed_by IS NULL RETURNING digest`,
    by.name,
    nowMs,
    organizationId,
    deploymentId,
    targetRevision,
  );
  if (changed.length === 0 && before.secretsSince === 0) {
    return { outcome: "confirmed", deployment: before };
  }
  const version = before.version + 1;
  const deployment = { ...before, updatedAtMs: nowMs, version, secretsSince: 0 };
  yield* storeDeployment(deployment);
  const given = names?.withheld ?? [];
  yield* record(parameters, organizationId, {
    action: "deployment.confirm_secrets",
    subjectId: deploymentId,
    subject: name,
    details: {
      revision: String(targetRevision),
      ...(changed[0] && { digest: changed[0].digest }),
      ...(given.length > 0 && { secrets: given.join(" ") }),
    },
  });
  yield* announce(nowMs, { kind: "deployment", id: deploymentId });
  return { outcome: "confirmed", deployment };
}

/** Sets and removes secrets of a deployment without new code. */
export function* updateSecrets(
  parameters: Parameters<HostingStorage["updateSecrets"]>[0],
): Operation<Awaited<ReturnType<SecretStorage["updateSecrets"]>>> {
  const { organizationId, deploymentId, name, nowMs } = parameters;
  yield* lockOrganization(organizationId);
  const before = yield* findDeployment({ organizationId, name });
  if (before === undefined || before.deploymentId !== deploymentId) {
    return { outcome: "not_found" };
  }
  if (parameters.version !== undefined && parameters.version !== before.version) {
    return { outcome: "version_conflict" };
  }
  const { changes: changesSecrets, tooMany } = yield* changeOfSecrets(before, parameters);
  if (tooMany) {
    return { outcome: "too_many_secrets" };
  }
  if (!changesSecrets) {
    return { outcome: "updated", deployment: before };
  }
  const version = before.version + 1;
  const { settings } = before;
  const { usesSecrets = false } = parameters;
  const deployment = {
    ...before,
    updatedAtMs: nowMs,
    version,
    secretsSince: secretsSince(before, { settings, version }, { usesSecrets, changesSecrets }),
    secretsVersion: version,
  };
  yield* storeDeployment(deployment);
  yield* storeSecrets(parameters, version);
  yield* record(parameters, organizationId, {
    action: "deployment.update_secrets",
    subjectId: deploymentId,
    subject: name,
    details: { ...secretDetails(parameters), ...(yield* withheldDetail(deployment)) },
  });
  yield* announce(nowMs, { kind: "deployment", id: deploymentId });
  return { outcome: "updated", deployment };
}
