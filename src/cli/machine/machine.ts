/** `tessera machine`: the machines that run workers of an organization, and which take work. */
import type { Command } from "commander";
import {
  type ListMachinesResponse,
  ListMachinesResponseSchema,
  type Machine,
  MachineSchema,
} from "../../client/index.ts";
import { inUnits } from "../../collections/sizes.ts";
import { type CloudActions, callCommand, group } from "../command.ts";
import { moment } from "../output.ts";
import { plain } from "../plain.ts";
import { type Table, table } from "../table.ts";

const NAME = ["<machine>", "the name of a machine that has joined"] as const;

export const machineCommand = group(
  "machine",
  "See the machines that run workers, and drain those that joined.",
  [
    listCommand,
    (actions) => changeCommand(actions, "drain"),
    (actions) => changeCommand(actions, "resume"),
  ],
);

function listCommand(actions: CloudActions): Command {
  return callCommand("list", actions, {
    description:
      "List the nodes with workers of the organization, and the machines that have joined, with their load.",
    examples: ["tessera machine list", "tessera machine list -o json"],
    run: async (call) => {
      const { client, organization } = call;
      const list = await client.machines.listMachines({ organization });
      call.show(ListMachinesResponseSchema, list, machineTable);
      if (list.omitted > 0) {
        call.done(`and ${list.omitted} more`);
      }
    },
  });
}

function changeCommand(actions: CloudActions, verb: "drain" | "resume"): Command {
  const isDrained = verb === "drain";
  return callCommand(verb, actions, {
    description: isDrained
      ? "Have a machine that joined take no new calls, also after its restart; those under way end as they would."
      : "Take a drained machine back.",
    arguments: [NAME],
    examples: [`tessera machine ${verb} gpu-1`],
    run: async (call, _flags, [machine = ""]) => {
      const { organization } = call;
      const { machines } = call.client;
      const request = { organization, machine };
      const changed = isDrained
        ? await machines.drainMachine(request)
        : await machines.resumeMachine(request);
      call.show(MachineSchema, changed, () =>
        isDrained ? `${machine} takes no new calls` : `${machine} takes calls again`,
      );
    },
  });
}

function machineTable({ machines }: ListMachinesResponse): Table {
  return table(
    ["MACHINE", "STATE", "PROCESSORS", "MEMORY", "WORKERS", "CALLS", "LABELS", "LAST HEARD"],
    machines.map((machine) => [
      plain(machine.name),
      stateText(machine),
      ...loadText(machine),
      String(sumOf(machine, "workers")),
      String(sumOf(machine, "calls")),
      plain(labelsText(machine.labels)),
      moment(machine.heardAt),
    ]),
    { empty: "No machines", drop: ["LABELS", "LAST HEARD", "CALLS"] },
  );
}

function stateText(machine: Machine): string {
  const { node, drain, faults, heardAt } = machine;
  const kind = node ? "node" : "joined";
  if (drain !== undefined) {
    const isBusy = sumOf(machine, node ? "workers" : "calls") > 0;
    return `${kind}, ${isBusy ? "draining" : heardAt === undefined ? "drained, away" : "drained"}`;
  }
  const [fault] = faults;
  return fault === undefined ? kind : `${kind}, not ready: ${plain(fault)}`;
}

function loadText({ load }: Machine): [processors: string, memory: string] {
  if (load === undefined) {
    return ["", ""];
  }
  const { processors, busyProcessors, usedMemoryBytes, memoryBytes } = load;
  return [
    `${busyProcessors.toFixed(1)} of ${processors}`,
    `${inUnits(Number(usedMemoryBytes))} of ${inUnits(Number(memoryBytes))}`,
  ];
}

function sumOf({ runs }: Machine, what: "workers" | "calls"): number {
  return runs.reduce((sum, run) => sum + run[what], 0);
}

/** Labels as flags have them: `gpu=h200 zone=b`. */
export function labelsText(labels: { readonly [name: string]: string }): string {
  return Object.entries(labels)
    .map((label) => label.join("="))
    .join(" ");
}
