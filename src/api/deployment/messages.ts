/** Conversion of deployments, revisions and log lines to messages. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type DeploymentLogLineSchema,
  type DeploymentSchema,
  DeploymentStatus,
  type RevisionSchema,
} from "../../../gen/tessera/v1/deployment_pb.js";
import { EndpointKind } from "../../../gen/tessera/v1/endpoint_pb.js";
import { type Placement, placementOf } from "../../deployments/placement.ts";
import type { DeploymentRecord } from "../../storage/accounts/organizations.ts";
import { DEFAULT_SETTINGS } from "../../storage/deployment-settings.ts";
import type { LogLine } from "../../storage/hosting/logs.ts";
import type { DeploymentState, HostingStatus } from "../../storage/hosting/nodes.ts";
import type { EndpointSummary, RevisionRecord } from "../../storage/hosting/revisions.ts";
import { timestampFromMs } from "../../time/messages.ts";
import { PLACE, settingsMessage } from "./settings.ts";

const STATUS: { readonly [status in HostingStatus]: DeploymentStatus } = {
  starting: DeploymentStatus.STARTING,
  ready: DeploymentStatus.READY,
  degraded: DeploymentStatus.DEGRADED,
  failed: DeploymentStatus.FAILED,
  stopped: DeploymentStatus.STOPPED,
};

/** A deployment as callers see it; `url` is the address for its calls. */
export function toDeploymentMessage(
  record: DeploymentRecord,
  state: DeploymentState,
  url: string,
): MessageInitShape<typeof DeploymentSchema> {
  const { deploymentId, organization, name, authorization, createdBy, version } = record;
  const { status, reason, revision, workers, nodes, endpoints } = state;
  const { placements, secretNames, withheldSecrets, observedVersion } = state;
  return {
    deploymentId,
    organization,
    name,
    authorization,
    createdAt: timestampFromMs(record.createdAtMs),
    createdBy,
    updatedAt: timestampFromMs(record.updatedAtMs),
    status: STATUS[status],
    statusReason: reason,
    url,
    revision: revision ?? 0,
    targetRevision: record.targetRevision ?? 0,
    workers,
    nodes,
    settings: { ...settingsMessage(record.settings), secretNames: [...secretNames] },
    endpoints: endpoints.map((each) => toEndpoint(each, record.settings)),
    version,
    observedVersion,
    pausedEndpoints: record.pausedEndpoints.map(({ endpoint, pausedAtMs, pausedBy }) => ({
      endpoint,
      pausedAt: timestampFromMs(pausedAtMs),
      pausedBy,
    })),
    secretsWithheld: [...withheldSecrets],
    placements: placements.map((one) => ({
      node: one.nodeId,
      status: STATUS[one.status],
      revision: one.revision ?? 0,
      workers: one.workers,
    })),
  };
}

export function toRevisionMessage(record: RevisionRecord): MessageInitShape<typeof RevisionSchema> {
  const { revision, digest, createdAtMs, createdBy, rolledBackTo, files, sizeBytes } = record;
  const { secretsConfirmed: confirmed } = record;
  return {
    revision,
    digest,
    createdAt: timestampFromMs(createdAtMs),
    createdBy,
    rolledBackTo: rolledBackTo ?? 0,
    files,
    sizeBytes: BigInt(sizeBytes),
    endpoints: record.endpoints.map((each) => toEndpoint(each, DEFAULT_SETTINGS)),
    secretsConfirmedBy: confirmed?.by ?? "",
    ...(confirmed && { secretsConfirmedAt: timestampFromMs(confirmed.atMs) }),
    ...(record.source && { source: record.source }),
    ...(record.servedAtMs !== undefined && { servedAt: timestampFromMs(record.servedAtMs) }),
  };
}

export function toLogMessage(line: LogLine): MessageInitShape<typeof DeploymentLogLineSchema> {
  const { sequence, timeMs, nodeId, worker, revision, stream, level, taskId, text } = line;
  return {
    sequence: BigInt(sequence),
    time: timestampFromMs(timeMs),
    node: nodeId,
    worker,
    revision,
    stream,
    text,
    level,
    taskId,
  };
}

const KINDS: Readonly<Record<EndpointSummary["kind"], EndpointKind>> = {
  api: EndpointKind.API,
  task: EndpointKind.TASK,
  server: EndpointKind.SERVER,
};

function toEndpoint(endpoint: EndpointSummary, settings: Placement) {
  const { name, kind, byKey } = endpoint;
  const { requires, place } = placementOf({}, endpoint, settings);
  return {
    name,
    kind: KINDS[kind],
    requires: { ...requires },
    place: PLACE.value(place),
    ...(byKey && {
      limitsByKey: {
        concurrency: byKey.concurrency ?? 0,
        rate: byKey.rate ?? "",
        bySeconds: byKey.fair === "seconds",
      },
    }),
  };
}
