/** The machines that run the workers of an organization, put together from these. */
import type { DeploymentWorkerJson } from "../../../../../gen/tessera/v1/deployment_pb.js";
import type { NodeJson } from "../../../../../gen/tessera/v1/operator_pb.js";

/** What a machine runs of one deployment. */
export interface MachineLoad {
  readonly deployment: string;
  readonly workers: number;
  readonly ready: number;
  readonly calls: number;
}

export interface MachineUse {
  /** Its name; that of a node is its id. */
  readonly name: string;
  /** Of another machine, which has joined: what it says of itself. Undefined: a node. */
  readonly joined: { readonly platform: string; readonly version: string } | undefined;
  /** What a node says of itself, which operators are told. */
  readonly node: NodeJson | undefined;
  readonly labels: readonly string[];
  /** GPUs, or shares of them, that its workers have; those of a joined machine are not told. */
  readonly gpus: readonly string[];
  readonly loads: readonly MachineLoad[];
  /** Why workers of it do not take calls, each once. */
  readonly faults: readonly string[];
  /** Since when it runs, or the oldest worker of it that is told. */
  readonly since: string | undefined;
}

/** The machines with their workers, and nodes without any: nodes first, then by name. */
export function machinesOf(
  workers: readonly DeploymentWorkerJson[],
  nodes: readonly NodeJson[] = [],
): readonly MachineUse[] {
  const groups = Map.groupBy(workers, ({ machine, node = "" }) =>
    machine === undefined ? `1/${node}` : `2/${machine.hostname}/${machine.platform}`,
  );
  const byKey = new Map(nodes.map((node) => [`1/${node.nodeId}`, node]));
  return [...new Set([...byKey.keys(), ...groups.keys()])]
    .sort()
    .map((key) => machineOf(groups.get(key) ?? [], byKey.get(key)));
}

function machineOf(
  workers: readonly DeploymentWorkerJson[],
  node: NodeJson | undefined,
): MachineUse {
  const [{ machine, node: nodeId = node?.nodeId ?? "" } = {}] = workers;
  const labels = workers.flatMap((one) =>
    Object.entries(one.machine?.labels ?? {}).map((label) => label.join("=")),
  );
  const byDeployment = Map.groupBy(workers, ({ deployment = "" }) => deployment);
  const loads = [...byDeployment].map(([deployment, own]) => ({
    deployment,
    workers: own.length,
    ready: own.filter(({ ready }) => ready === true).length,
    calls: own.reduce((sum, { calls = 0 }) => sum + calls, 0),
  }));
  const [since] = workers.flatMap(({ startedAt }) => startedAt ?? []).sort();
  return {
    name: machine === undefined ? nodeId : machine.hostname || "without a name",
    joined: machine && { platform: machine.platform ?? "", version: machine.version ?? "" },
    node,
    labels: [...new Set(labels)].sort(),
    gpus: workers.flatMap(({ gpus = [] }) => gpus),
    loads: loads.sort((one, other) => (one.deployment < other.deployment ? -1 : 1)),
    faults: [...new Set(workers.flatMap(({ fault }) => fault || []))],
    since: node?.startedAt ?? since,
  };
}
