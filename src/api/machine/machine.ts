/**
 * MachineService: the machines that run workers of an organization, put together from what their
 * workers tell, and which of them are drained. The names of joined machines are theirs to choose,
 * so an organization drains its own alone.
 */
import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type {
  MachineDrainSchema,
  MachineLoadSchema,
  MachineSchema,
  MachineService,
  MachineWorkSchema,
} from "../../../gen/tessera/v1/machine_pb.js";
import type { Directory } from "../../deployments/directory.ts";
import { type Problem, problem } from "../../errors.ts";
import { MAX_DRAINED_MACHINES } from "../../hosting/membership.ts";
import { deed, type Member, memberOf, type Sources } from "../../server/rpc/engine/caller.ts";
import type {
  DeploymentWorkers,
  DrainedMachine,
  MachineStorage,
} from "../../storage/hosting/machines.ts";
import type { MachineLoad, WorkerRecord } from "../../storage/hosting/nodes.ts";
import { timestampFromMs } from "../../time/messages.ts";

/** Machines in an answer. */
const MAX_LISTED_MACHINES = 1_000;
/** Deployments in what a machine runs. */
const MAX_LISTED_RUNS = 100;
/** Faults of the workers of a machine. */
const MAX_LISTED_FAULTS = 10;
/** GPUs of the workers of a machine. */
const MAX_LISTED_GPUS = 100;

/** A message that is made here. */
type New<Schema extends DescMessage> = Extract<
  MessageInitShape<Schema>,
  { readonly $typeName?: undefined }
>;
type Message = New<typeof MachineSchema>;

interface MachineServiceOptions extends Sources {
  readonly hosting: MachineStorage;
  readonly directory: AllWorkersOptions["directory"];
}

/** What knows all workers of an organization. */
export interface AllWorkersOptions {
  readonly hosting: Pick<MachineStorage, "listAllWorkers">;
  readonly directory: Pick<Directory, "nodeId" | "allWorkersHere">;
  readonly now: () => number;
}

export function machineService(
  options: MachineServiceOptions,
): Partial<ServiceImpl<typeof MachineService>> {
  const { hosting } = options;

  return {
    async listMachines(_, ctx) {
      const machines = await list(memberOf(ctx));
      const omitted = Math.max(0, machines.length - MAX_LISTED_MACHINES);
      return { machines: machines.slice(0, MAX_LISTED_MACHINES), omitted };
    },

    async drainMachine({ machine }, ctx) {
      const member = memberOf(ctx);
      const { organizationId, by } = member;
      await find(member, machine);
      const key = { organizationId, machine, limit: MAX_DRAINED_MACHINES };
      const { outcome } = await hosting.drainMachine({ ...deed(by, options), ...key });
      if (outcome === "limit") {
        throw tooManyDrained();
      }
      return find(member, machine);
    },

    async resumeMachine({ machine }, ctx) {
      const member = memberOf(ctx);
      const { organizationId, by } = member;
      const found = await find(member, machine);
      await hosting.resumeMachine({ ...deed(by, options), organizationId, machine });
      const { drain: _, ...resumed } = found;
      return resumed;
    },
  };

  async function find(member: Member, machine: string): Promise<Message> {
    const joined = (await list(member)).filter(({ node }) => node !== true);
    const found = joined.find(({ name }) => name === machine);
    if (found === undefined) {
      throw machineNotFound(machine, "has joined, or is drained: tessera machine list lists them");
    }
    return found;
  }

  async function list({ organizationId }: Member): Promise<Message[]> {
    const [workers, drained, drainedNodes] = await Promise.all([
      allWorkersOf(options, organizationId),
      hosting.listDrained({ organizationId }),
      hosting.listDrained({ organizationId: undefined }),
    ]);
    return machinesOf(workers, { drained, drainedNodes, nowMs: options.now() });
  }
}

/** The workers of an organization: those of this node as they are, others as they were reported. */
export async function allWorkersOf(
  { hosting, directory, now }: AllWorkersOptions,
  organizationId: string,
): Promise<DeploymentWorkers[]> {
  const reported = await hosting.listAllWorkers({ organizationId, nowMs: now() });
  const here = directory.allWorkersHere?.(organizationId) ?? [];
  return [...reported.filter(({ nodeId }) => nodeId !== directory.nodeId), ...here];
}

/** The error of a machine that is not there. */
export function machineNotFound(machine: string, why: string): Problem {
  return problem("MACHINE_NOT_FOUND", `no machine ${JSON.stringify(machine)} ${why}`);
}

export function tooManyDrained(): Problem {
  return problem(
    "LIMIT_REACHED",
    `${MAX_DRAINED_MACHINES} machines are drained, and no more may be: take back those that are gone for good`,
  );
}

interface Drains {
  readonly drained: readonly DrainedMachine[];
  readonly drainedNodes: readonly DrainedMachine[];
  readonly nowMs: number;
}

/** A worker, with the name of its deployment. */
interface Placed extends WorkerRecord {
  readonly deployment: string;
}

/** The machines with their workers, and drained ones without any: nodes first, then by name. */
export function machinesOf(
  reports: readonly DeploymentWorkers[],
  { drained, drainedNodes, nowMs }: Drains,
): Message[] {
  const byNode = new Map<string, Placed[]>();
  const machineOfNode = new Map(reports.map(({ nodeId, nodeMachine }) => [nodeId, nodeMachine]));
  const byMachine = new Map<string, Placed[]>(drained.map(({ machine }) => [machine, []]));
  for (const { nodeId, deployment, workers } of reports) {
    for (const worker of workers) {
      const [groups, key] =
        worker.machine === undefined ? [byNode, nodeId] : [byMachine, worker.machine.hostname];
      const group = groups.get(key) ?? [];
      group.push({ ...worker, deployment });
      groups.set(key, group);
    }
  }
  const nodeDrains = new Map(drainedNodes.map((one) => [one.machine, one]));
  const drains = new Map(drained.map((one) => [one.machine, one]));
  return [
    ...sorted(byNode).map(([nodeId, workers]) => ({
      ...machineOf(nodeId, workers, nowMs),
      node: true,
      ...drainOf(nodeDrains.get(machineOfNode.get(nodeId) ?? "")),
    })),
    ...sorted(byMachine).map(([name, workers]) => ({
      ...machineOf(name, workers, nowMs),
      ...joinedFacts(workers),
      ...drainOf(drains.get(name)),
    })),
  ];
}

function sorted(groups: ReadonlyMap<string, readonly Placed[]>) {
  return [...groups].sort(([one], [other]) => (one < other ? -1 : 1));
}

function machineOf(name: string, workers: readonly Placed[], nowMs: number): Message {
  const runs = [...Map.groupBy(workers, ({ deployment }) => deployment)]
    .map(([deployment, own]) => workOf(deployment, own))
    .sort((one, other) => (one.deployment < other.deployment ? -1 : 1));
  const started = workers.map(({ startedAtMs }) => startedAtMs);
  const heard = workers.map(({ machine }) => machine?.heardAtMs ?? nowMs);
  return {
    name,
    runs: runs.slice(0, MAX_LISTED_RUNS),
    omittedRuns: Math.max(0, runs.length - MAX_LISTED_RUNS),
    faults: [...new Set(workers.flatMap(({ fault = [] }) => fault))].slice(0, MAX_LISTED_FAULTS),
    gpus: workers.flatMap(({ gpus = [] }) => gpus).slice(0, MAX_LISTED_GPUS),
    ...(workers.length > 0 && {
      startedAt: timestampFromMs(least(started)),
      heardAt: timestampFromMs(-least(heard.map((atMs) => -atMs))),
    }),
  };
}

/** Of many: they may be more than a call takes arguments. */
function least(numbers: readonly number[]): number {
  return numbers.reduce((one, other) => Math.min(one, other), Number.POSITIVE_INFINITY);
}

function workOf(deployment: string, workers: readonly Placed[]) {
  return {
    deployment,
    workers: workers.length,
    ready: workers.filter(({ ready }) => ready).length,
    calls: workers.reduce((sum, { calls }) => sum + calls, 0),
  } satisfies New<typeof MachineWorkSchema>;
}

/** What a joined machine says of itself, by the worker of it that joined last. */
function joinedFacts(workers: readonly Placed[]): Message {
  const machines = workers
    .toSorted((one, other) => other.startedAtMs - one.startedAtMs)
    .flatMap(({ machine = [] }) => machine);
  const [newest] = machines;
  const load = machines.find((machine) => machine.load !== undefined)?.load;
  return {
    platform: newest?.platform ?? "",
    version: newest?.version ?? "",
    labels: Object.assign({}, ...machines.map(({ labels }) => labels).reverse()),
    ...(load && { load: loadMessage(load) }),
  };
}

export function loadMessage(load: MachineLoad): New<typeof MachineLoadSchema> {
  return {
    ...load,
    memoryBytes: BigInt(load.memoryBytes),
    usedMemoryBytes: BigInt(load.usedMemoryBytes),
  };
}

/** The field `drain` of a machine; nothing where it is not drained. */
export function drainOf(found: DrainedMachine | undefined): {
  readonly drain?: New<typeof MachineDrainSchema>;
} {
  return found === undefined
    ? {}
    : { drain: { startedAt: timestampFromMs(found.drainedAtMs), startedBy: found.drainedBy } };
}
