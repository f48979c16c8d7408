/** ListWorkers: the workers of a deployment, on this node as they are, on others as reported. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type {
  DeploymentService,
  DeploymentWorkerSchema,
} from "../../../gen/tessera/v1/deployment_pb.js";
import type { Directory } from "../../deployments/directory.ts";
import { memberOf } from "../../server/rpc/engine/caller.ts";
import type { Organizations } from "../../storage/accounts/organizations.ts";
import type { NodeStorage, WorkerRecord } from "../../storage/hosting/nodes.ts";
import { timestampFromMs } from "../../time/messages.ts";
import { findDeployment } from "./refusals.ts";

export interface ListWorkersOptions {
  readonly accounts: Pick<Organizations, "findDeployment">;
  readonly hosting: Pick<NodeStorage, "listWorkers">;
  readonly now: () => number;
  readonly directory: Pick<Directory, "workersHere">;
}

/** The implementation of ListWorkers. */
export function listWorkers({
  accounts,
  hosting,
  now,
  directory,
}: ListWorkersOptions): ServiceImpl<typeof DeploymentService>["listWorkers"] {
  return async ({ deployment: name }, ctx) => {
    const { organizationId, deploymentId } = await findDeployment(accounts, memberOf(ctx), name);
    const reported = await hosting.listWorkers({ organizationId, deploymentId, nowMs: now() });
    const here = directory.workersHere?.(deploymentId);
    const nodes = here
      ? [...reported.filter(({ nodeId }) => nodeId !== here.nodeId), here]
      : reported;
    const sorted = nodes.toSorted((one, other) => (one.nodeId < other.nodeId ? -1 : 1));
    return {
      workers: sorted.flatMap(({ nodeId, workers }) =>
        workers.map((one) => ({ ...toWorker(nodeId, one), deployment: name })),
      ),
      omitted: nodes.reduce((sum, { omitted }) => sum + omitted, 0),
    };
  };
}

function machineMessage(machine: NonNullable<WorkerRecord["machine"]>) {
  const { hostname, platform, version, labels, isDrained = false } = machine;
  return { hostname, platform, version, labels: { ...labels }, drained: isDrained };
}

function toWorker(
  node: string,
  { workerId, revision, machine, startedAtMs, calls, ready, fault = "", gpus = [] }: WorkerRecord,
): MessageInitShape<typeof DeploymentWorkerSchema> {
  return {
    workerId,
    node,
    revision,
    ...(machine && { machine: machineMessage(machine) }),
    startedAt: timestampFromMs(startedAtMs),
    calls,
    ready,
    fault,
    gpus: [...gpus],
  };
}
