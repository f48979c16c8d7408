/** Creates revisions: checks, secrets, artifact and settings in one transaction. */
import type { DeploymentRecord } from "../../accounts/organizations.ts";
import { changedSettings } from "../../deployment-settings.ts";
import type { HostingStorage } from "../../hosting/hosting.ts";
import type { Revisions } from "../../hosting/revisions.ts";
import { record } from "../accounts/audit.ts";
import { announce } from "../accounts/changes.ts";
import {
  countDeployments,
  insertDeployment,
  newDeployment,
  opensWrongly,
  secretsSince,
  storeDeployment,
} from "../accounts/deployment-rows.ts";
import { findDeployment } from "../accounts/deployments.ts";
import { lockOrganization } from "../accounts/locks.ts";
import { type Operation, query } from "../operation.ts";
import { addArtifact, missingModels } from "./artifacts.ts";
import { addRevision } from "./revisions.ts";
import { declareSchedules, tooManySchedules } from "./schedules.ts";
import { changeOfSecrets, secretDetails, storeSecrets, withheldDetail } from "./secrets.ts";

type Requested = Parameters<HostingStorage["createRevision"]>[0];
type Answer = Awaited<ReturnType<Revisions["createRevision"]>>;

/** Creates a revision. All checks run before the first write. */
export function* createRevision(parameters: Requested): Operation<Answer> {
  const { organizationId, name, deploymentId, nowMs, artifact } = parameters;
  const organization = yield* lockOrganization(organizationId);
  if (organization === undefined) {
    throw new Error(`a revision was made in organization ${organizationId}, which is gone`);
  }
  const found = yield* findDeployment({ organizationId, name });
  if (found === undefined ? yield* isDeleted(deploymentId) : found.deploymentId !== deploymentId) {
    return { outcome: "conflict", deploymentId: found?.deploymentId };
  }
  if (found !== undefined && opensWrongly(found, parameters)) {
    return { outcome: "not_openable" };
  }
  if (found === undefined && (yield* countDeployments(organizationId)) >= parameters.limit) {
    return { outcome: "limit" };
  }
  const before =
    found ??
    newDeployment({ ...parameters, authorization: false, organization: organization.name });
  const version = found === undefined ? 1 : found.version + 1;
  const secrets = yield* changeOfSecrets(parameters, parameters);
  const wanted = changed(before, parameters, { version, changesSecrets: secrets.changes });
  if (wanted.settings.minWorkers > wanted.settings.maxWorkers) {
    return { outcome: "workers_contradict" };
  }
  if (secrets.tooMany) {
    return { outcome: "too_many_secrets" };
  }
  const { schedules, maxSchedules = Number.POSITIVE_INFINITY } = parameters;
  if (schedules && (yield* tooManySchedules(parameters, schedules, maxSchedules))) {
    return { outcome: "too_many_schedules" };
  }
  const missing = yield* missingModels(organizationId, artifact.models ?? []);
  if (missing.length > 0) {
    return { outcome: "models_missing", models: missing };
  }
  const added = yield* addArtifact(organizationId, artifact);
  if (added.outcome !== "added") {
    return added;
  }
  const { usesSecrets = false, by, keptRevisions: kept } = parameters;
  const confirmed = usesSecrets ? { by: by.name, atMs: nowMs } : undefined;
  const { digest } = artifact;
  const source = parameters.source && JSON.stringify(parameters.source);
  const revision = { digest, source, createdBy: by.name, kept, confirmed };
  const deployment = yield* addRevision(wanted, revision);
  yield* found === undefined ? insertDeployment(deployment) : storeDeployment(deployment);
  yield* storeSecrets(parameters, version);
  const scheduled = schedules ? yield* declareSchedules(parameters, schedules) : {};
  yield* record(parameters, organizationId, {
    action: "deployment.deploy",
    subjectId: deploymentId,
    subject: name,
    details: {
      ...detailsOf(parameters, { found, before, deployment }),
      ...scheduled,
      ...(yield* withheldDetail(deployment)),
    },
  });
  yield* announce(nowMs, { kind: "deployment", id: deploymentId });
  return { outcome: "created", deployment, revision: deployment.targetRevision };
}

function* isDeleted(deploymentId: string): Operation<boolean> {
  const rows = yield* query(
    "SELECT 1 AS deleted FROM deleted_deployments WHERE deployment_id = ?",
    deploymentId,
  );
  return rows.length > 0;
}

function changed(
  before: DeploymentRecord,
  parameters: Requested,
  { version, changesSecrets }: { readonly version: number; readonly changesSecrets: boolean },
): DeploymentRecord {
  const { authorization = before.authorization, nowMs, usesSecrets = false } = parameters;
  const settings = { ...before.settings, ...parameters.settings };
  return {
    ...before,
    authorization,
    settings,
    updatedAtMs: nowMs,
    version,
    secretsSince: secretsSince(before, { settings, version }, { usesSecrets, changesSecrets }),
    ...(changesSecrets && { secretsVersion: version }),
  };
}

function detailsOf(
  parameters: Requested,
  deployments: {
    readonly found: DeploymentRecord | undefined;
    readonly before: DeploymentRecord;
    readonly deployment: DeploymentRecord;
  },
): { readonly [name: string]: string } {
  const { found, before, deployment } = deployments;
  return {
    revision: String(deployment.targetRevision),
    digest: parameters.artifact.digest,
    ...(found?.authorization !== deployment.authorization && {
      authorization: String(deployment.authorization),
    }),
    ...changedSettings(before.settings, deployment.settings),
    ...secretDetails(parameters),
  };
}
