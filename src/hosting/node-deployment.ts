/** A deployment on this node with what belongs to it: its log, and where its workers get what they need. */
import { deploymentSecretContext, type KeyRing } from "../auth/keys.ts";
import { HostedDeployment, type HostedOptions } from "../deployments/deployment.ts";
import { environmentBytes, MAX_ENVIRONMENT_BYTES } from "../deployments/environment.ts";
import type { Log } from "../log/log.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Hosting as HostingRecords } from "../storage/hosting/hosting.ts";
import type { HostedRecord } from "../storage/hosting/revisions.ts";
import type { UnpackedArtifacts } from "./artifact-cache.ts";
import type { ServedRevision, ServedRevisions } from "./last-served.ts";
import { DeploymentLog, sharedLog } from "./logs.ts";
import type { Nodes } from "./membership.ts";
import { Resident } from "./reconciler.ts";
import type { Share } from "./resident-options.ts";

export interface TenantOptions {
  readonly hosting: HostingRecords;
  readonly keys: KeyRing;
  readonly nodes: Nodes;
  readonly artifacts: UnpackedArtifacts;
  readonly served: ServedRevisions;
  /** What all deployments of the node have in common. */
  readonly common: Pick<
    HostedOptions,
    | "storage"
    | "notifier"
    | "rounds"
    | "starts"
    | "newId"
    | "now"
    | "maxWaiting"
    | "graceMs"
    | "readyTimeoutMs"
    | "maxResultBytes"
    | "maxFileBytes"
    | "files"
    | "allowNativeCode"
    | "tracing"
  >;
  /** Where the node counts. */
  readonly metrics?: Metrics | undefined;
  readonly log: Log;
}

export interface Tenant {
  readonly resident: Resident;
  readonly lines: DeploymentLog;
}

/** `onChange`: what it reports may have changed. */
export function openTenant(
  record: HostedRecord,
  options: TenantOptions,
  onChange: () => void,
): Tenant {
  const { hosting, nodes, artifacts, served, common, metrics } = options;
  const { organizationId, deploymentId, organization, name } = record;
  const { nodeId } = nodes;
  const { now } = common;
  const lines = new DeploymentLog({
    ...{ organizationId, deploymentId, hosting, nodeId, now },
    log: options.log,
  });
  const log = sharedLog(options.log, deploymentId, lines);
  const shareOf = ({ settings: { minWorkers, maxWorkers } }: HostedRecord): Share => {
    const max = Math.max(nodes.shareOf(maxWorkers), 1);
    return { min: Math.min(nodes.shareOf(minWorkers), max), max, nodes: nodes.count };
  };
  const resident = new Resident(record, {
    open: (_record, scale) =>
      new HostedDeployment({
        ...common,
        organization,
        record: { deploymentId, name: `${organization}/${name}` },
        counted: metrics && { metrics, organizationId },
        workers: scale.min,
        scale,
        log,
        onOutput: (line, { workerId, revision = 0 }) =>
          lines.write({ worker: workerId, revision, stream: "stdout", text: line }),
        onReadiness: onChange,
      }),
    hold: (organizationId, digest) => artifacts.hold(organizationId, digest),
    environment: (record) => environmentOf(record, options),
    servedElsewhere: (record) => servedElsewhere(record, options),
    served,
    shareOf,
    log,
    onChange,
  });
  return { resident, lines };
}

/** Variables, and secrets, which win over variables of their name. */
async function environmentOf(
  { organizationId, deploymentId, settings }: HostedRecord,
  { hosting, keys }: TenantOptions,
): Promise<{ readonly [name: string]: string }> {
  const secrets = await hosting.getSecrets({ organizationId, deploymentId });
  const opened = secrets.map(({ name, sealed }) => {
    const context = deploymentSecretContext({ organizationId, deploymentId, name });
    try {
      return [name, keys.unseal(sealed, context)] as const;
    } catch (err) {
      throw new Error(
        `its secret ${name} cannot be opened with the platform's keys: set it again`,
        {
          cause: err,
        },
      );
    }
  });
  const environment = { ...settings.env, ...Object.fromEntries(opened) };
  const bytes = environmentBytes(environment);
  if (bytes > MAX_ENVIRONMENT_BYTES) {
    throw new Error(
      `its variables and secrets take ${bytes} bytes, and ${MAX_ENVIRONMENT_BYTES} is the limit: remove some`,
    );
  }
  return environment;
}

async function servedElsewhere(
  record: HostedRecord,
  { hosting, common }: TenantOptions,
): Promise<ServedRevision | undefined> {
  const { organizationId, deploymentId, targetRevision = 1 } = record;
  const [state] = await hosting.describeDeployments({
    organizationId,
    deployments: [record],
    nowMs: common.now(),
  });
  const revision = state?.revision;
  if (revision === undefined || revision >= targetRevision) {
    return undefined;
  }
  const { items } = await hosting.listRevisions({
    ...{ organizationId, deploymentId },
    limit: 1,
    after: String(revision + 1),
  });
  const [found] = items;
  return found?.revision === revision ? { revision, digest: found.digest } : undefined;
}
