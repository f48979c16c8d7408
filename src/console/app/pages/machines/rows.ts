/** The rows of the table of machines: those of the organization, with what operators see of nodes. */
import type { MachineJson, MachineLoadJson } from "../../../../../gen/tessera/v1/machine_pb.js";
import type {
  ListNodesResponseJson,
  NodeFactsJson,
  NodeJson,
} from "../../../../../gen/tessera/v1/operator_pb.js";

export interface MachineRow extends MachineJson {
  /** What a node says of itself, which operators are told. */
  readonly told: NodeJson | undefined;
  /** By what name it is drained; undefined where it has none. */
  readonly drainedAs: string | undefined;
  /** It is drained, and neither a node nor a worker is on it. */
  readonly isAway: boolean;
}

/** Nodes first, then the others, each by name. */
export function rowsOf(
  machines: readonly MachineJson[],
  { nodes = [], away = [] }: ListNodesResponseJson = {},
): readonly MachineRow[] {
  const known = new Map(
    machines.filter(({ node }) => node).map((machine) => [machine.name, machine]),
  );
  const told = new Map(nodes.map((node) => [node.nodeId, node]));
  const names = [...new Set([...known.keys(), ...told.keys()])].sort();
  return [
    ...names.map((name) => nodeRow(known.get(name) ?? { name: name ?? "" }, told.get(name))),
    ...away.map(({ machine = "", drain = {} }) => ({
      ...{ name: machine, node: true, drain, drainedAs: machine, isAway: true },
      told: undefined,
    })),
    ...machines
      .filter(({ node }) => !node)
      .map((machine) => ({
        ...machine,
        told: undefined,
        drainedAs: machine.name || undefined,
        isAway: machine.heardAt === undefined,
      })),
  ];
}

function nodeRow(machine: MachineJson, told: NodeJson | undefined): MachineRow {
  const { startedAt = machine.startedAt, heardAt = machine.heardAt, facts } = told ?? {};
  const drain = told?.drain ?? machine.drain;
  return {
    ...machine,
    node: true,
    ...(startedAt !== undefined && { startedAt }),
    ...(heardAt !== undefined && { heardAt }),
    ...(drain !== undefined && { drain }),
    ...(facts?.load !== undefined && { load: facts.load }),
    ...(facts?.labels !== undefined && { labels: facts.labels }),
    ...(facts?.version !== undefined && { version: facts.version }),
    told,
    drainedAs: told?.machine || undefined,
    isAway: false,
  };
}

/** All workers of it that this person may see, and those that take calls. */
export function workersOf({ runs = [] }: MachineRow) {
  const sum = (of: "workers" | "ready" | "calls"): number =>
    runs.reduce((all, run) => all + (run[of] ?? 0), 0);
  return { workers: sum("workers"), ready: sum("ready"), calls: sum("calls") };
}

/** Whether something still runs on a machine that is drained. */
export function isBusy(row: MachineRow): boolean {
  return row.node
    ? (row.told?.facts?.workers ?? workersOf(row).workers) > 0
    : workersOf(row).calls > 0;
}

/** The numbers of a load, or of what a node tells, which JSON has as texts; 0 for what is not told. */
export function numbersOf(told: MachineLoadJson & NodeFactsJson) {
  const number = (name: NumberName): number => Number(told[name] ?? 0);
  return {
    processors: number("processors"),
    busyProcessors: number("busyProcessors"),
    memoryBytes: number("memoryBytes"),
    usedMemoryBytes: number("usedMemoryBytes"),
    maxMemoryBytes: number("maxMemoryBytes"),
    diskBytes: number("diskBytes"),
    freeDiskBytes: number("freeDiskBytes"),
  };
}

type NumberName =
  | Exclude<keyof MachineLoadJson, "$typeName">
  | "maxMemoryBytes"
  | "diskBytes"
  | "freeDiskBytes";
