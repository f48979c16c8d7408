/**
 * Wires one deployment on this node: its reconciler, its log, the artifact, the variables
 * and the Python environment of its workers.
 */

import type { Environments } from "../artifacts/environments/environment.ts";
import type { Images } from "../artifacts/images/images.ts";
import type { Layers } from "../artifacts/layers/layers.ts";
import { deploymentSecretContext, type KeyRing } from "../auth/keys.ts";
import type { CacheFolders } from "../deployments/cache-folders.ts";
import { Deployment } from "../deployments/deployment.ts";
import { environmentBytes, MAX_ENVIRONMENT_BYTES } from "../deployments/environment.ts";
import type { DeploymentOptions } from "../deployments/options.ts";
import type { Log } from "../log/log.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Gpus } from "../pool/gpus/gpus.ts";
import type { MaintainedQueue, Maintenance } from "../queue/maintenance/maintenance.ts";
import type { MachineLabels } from "../storage/deployment-settings.ts";
import type { HostingStorage as HostingRecords } from "../storage/hosting/hosting.ts";
import type { DesiredDeployment } from "../storage/hosting/revisions.ts";
import type { ArtifactCache } from "./artifact-cache.ts";
import type { Budgets } from "./budgets.ts";
import type { LastServed, ServedRevision } from "./last-served.ts";
import { DeploymentLog, sharedLog } from "./logs.ts";
import type { Manifests } from "./manifests.ts";
import type { NodeMembership } from "./membership.ts";
import type { ModelStore } from "./models/store.ts";
import type { Variables } from "./preparation.ts";
import { Reconciler, type Share } from "./reconciler.ts";

export interface NodeDeploymentOptions {
  readonly hosting: HostingRecords;
  readonly keys: KeyRing;
  readonly nodes: NodeMembership;
  readonly artifacts: ArtifactCache;
  readonly models: ModelStore;
  /** Undefined where services in Python do not run. */
  readonly environments: Environments | undefined;
  readonly layers: Pick<Layers, "hold"> | undefined;
  readonly images: Pick<Images, "hold"> | undefined;
  readonly served: LastServed;
  readonly manifests: Manifests;
  /** Options that all deployments of the node share. */
  readonly common: Pick<
    DeploymentOptions,
    | "storage"
    | "notifier"
    | "maintenance"
    | "starts"
    | "budget"
    | "newId"
    | "now"
    | "maxRetentionMs"
    | "maxWaiting"
    | "graceMs"
    | "readyTimeoutMs"
    | "maxResultBytes"
    | "maxFileBytes"
    | "files"
    | "readers"
    | "heldPieces"
    | "callUsage"
    | "allowNativeCode"
    | "launchOf"
    | "sandbox"
    | "allowedEgress"
    | "tracing"
  >;
  /** The labels of this node. */
  readonly labels: MachineLabels;
  /** Its GPUs. */
  readonly gpus: Gpus;
  readonly caches: CacheFolders;
  /** The budgets that bound its calls. Default: calls are not bounded by budgets. */
  readonly budgets?: Pick<Budgets, "refusal"> | undefined;
  /** Whether it may start no workers, because its machine is drained. Default: it may. */
  readonly isDrained?: () => boolean;
  /** Default: nothing is counted. */
  readonly metrics?: Metrics | undefined;
  readonly log: Log;
}

export interface NodeDeployment {
  readonly reconciler: Reconciler;
  readonly lines: DeploymentLog;
}

/** Opens a deployment. `onChange` is called when its report may have changed. */
export function openNodeDeployment(
  record: DesiredDeployment,
  options: NodeDeploymentOptions,
  onChange: () => void,
): NodeDeployment {
  const { hosting, nodes, artifacts, environments, layers, images, served, common, metrics } =
    options;
  const { organizationId, deploymentId, organization, name } = record;
  const { budgets } = options;
  const { nodeId } = nodes;
  const { now } = common;
  const lines = new DeploymentLog({
    organizationId,
    deploymentId,
    hosting,
    nodeId,
    now,
    log: options.log,
  });
  const log = sharedLog(options.log, deploymentId, lines);
  const shareOf = ({ settings }: DesiredDeployment): Share => {
    const { minWorkers, maxWorkers, queueTimeMs } = settings;
    const max = Math.max(nodes.shareOf(maxWorkers), 1);
    const min = Math.min(nodes.shareOf(minWorkers), max);
    return { min, max, nodes: Math.max(1, nodes.count), queueTimeMs };
  };
  const reconciler: Reconciler = new Reconciler(record, {
    open: (_record, scale) =>
      new Deployment({
        ...common,
        nodeId,
        organization,
        record: { deploymentId, name: `${organization}/${name}` },
        counted: metrics && { metrics, organizationId },
        heldPieces: common.heldPieces?.of(organizationId),
        ...(budgets && {
          budgetRefusal: (kind, tokenId) =>
            budgets.refusal({ organizationId, name }, kind, tokenId),
        }),
        workers: scale.min,
        scale,
        retentionMs: () => reconciler.record.settings.retentionMs,
        pausedEndpoints: () => reconciler.record.pausedEndpoints,
        log,
        onOutput: (line, { workerId, revision = 0 }) =>
          lines.write({
            worker: workerId,
            revision,
            taskId: "",
            stream: "stdout",
            level: "info",
            text: line,
          }),
        onTold: (...told) => reconciler.told(...told),
        onReadiness: () => {
          reconciler.workersChanged();
          onChange();
        },
      }),
    hold: (organizationId, digest) => artifacts.hold(organizationId, digest),
    variables: (record, revision) => variablesOf({ record, revision, lines }, options),
    environments,
    layers,
    images,
    labels: options.labels,
    gpus: options.gpus,
    caches: options.caches,
    ...(options.isDrained && { isDrained: options.isDrained }),
    models: options.models,
    onProgress: (text, revision) =>
      lines.write({ worker: "", revision, taskId: "", stream: "node", level: "info", text }),
    servedByOthers: (record) => servedByOthers(record, options),
    served,
    manifests: options.manifests,
    asleep: ({ digest = "" }) => {
      const kept = new DisposableStack();
      kept.defer(artifacts.keep(digest));
      const queue = sleepingQueue(common.maintenance, () => void reconciler.wake());
      kept.defer(common.maintenance.register(deploymentId, queue));
      return kept;
    },
    shareOf,
    log,
    onChange,
  });
  return { reconciler, lines };
}

/**
 * The queue of what is asleep, which wakes for its tasks and for the times of its schedules. A
 * caller that waits for one of its tasks waits on another node.
 */
function sleepingQueue(
  maintenance: Pick<Maintenance, "tellOthers">,
  wake: () => void,
): MaintainedQueue {
  const ignored = (): void => {};
  return {
    ...{ onDue: wake, onSuspects: wake, onSchedule: wake },
    onRescued: (task) => {
      maintenance.tellOthers(task);
      wake();
    },
    onExpired: (task) => maintenance.tellOthers(task),
    ...{ onMissed: ignored, onStorage: ignored, abort: ignored },
    awaited: () => [],
    leaseIds: () => [],
  };
}

/**
 * The variables and the secrets that a revision may have; a secret wins over a variable of the
 * same name.
 */
async function variablesOf(
  { record, revision, lines }: VariablesOptions,
  { hosting, keys }: NodeDeploymentOptions,
): Promise<Variables> {
  const { organizationId, deploymentId, settings } = record;
  const key = { organizationId, deploymentId, revision };
  const { given, withheld } = await hosting.getRevisionSecrets(key);
  if (withheld.length > 0) {
    const text = `it runs without the ${withheld.length === 1 ? "secret" : "secrets"} ${withheld.join(", ")}: its code or its variables are from somebody who may not use them, and nobody has confirmed them yet`;
    lines.write({ worker: "", revision, taskId: "", stream: "node", level: "warn", text });
  }
  const opened = given.map(({ name, sealed }) => {
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
  const env = { ...settings.env, ...Object.fromEntries(opened) };
  const bytes = environmentBytes(env);
  if (bytes > MAX_ENVIRONMENT_BYTES) {
    throw new Error(
      `its variables and secrets take ${bytes} bytes, and ${MAX_ENVIRONMENT_BYTES} is the limit: remove some`,
    );
  }
  return { env, secrets: given.map(({ name }) => name) };
}

interface VariablesOptions {
  readonly record: DesiredDeployment;
  readonly revision: number;
  readonly lines: DeploymentLog;
}

async function servedByOthers(
  record: DesiredDeployment,
  { hosting, common }: NodeDeploymentOptions,
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
    organizationId,
    deploymentId,
    limit: 1,
    after: String(revision + 1),
  });
  const [found] = items;
  return found?.revision === revision ? { revision, digest: found.digest } : undefined;
}
