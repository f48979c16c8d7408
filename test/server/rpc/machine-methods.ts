/** The rows of MachineService and OperatorService. */
import { MachineService } from "../../../gen/tessera/v1/machine_pb.js";
import { OperatorService } from "../../../gen/tessera/v1/operator_pb.js";
import type { Cast } from "./callers.ts";
import type { TestPlatform } from "./platform.ts";
import { FOREIGN, named, type Row } from "./row.ts";
import { newName } from "./world.ts";

/** What OperatorService does not only read. */
const CHANGES_NODES = new Set(["DrainNode", "ResumeNode"]);

/** A machine with a node that lives. */
async function nodeOf(platform: TestPlatform) {
  const machine = newName("node");
  const { hosting } = platform.storage;
  await hosting.beat({ nodeId: machine, machine, nowMs: platform.now(), ttlMs: 60_000 });
  return { machine };
}

/** A machine that is drained, and away. */
async function machineOf(platform: TestPlatform, cast: Cast) {
  const name = newName("gpu");
  await platform.storage.hosting.drainMachine({
    ...platform.deed(),
    ...{ organizationId: cast.company.organizationId, machine: name, limit: 1_000 },
  });
  return { ...named(cast), machine: name };
}

const machine = MachineService.method;

export const MACHINE_ROWS: readonly Row[] = [
  ...Object.values(OperatorService.method).map((method) => ({
    method,
    request: CHANGES_NODES.has(method.name) ? nodeOf : () => ({}),
  })),
  { method: machine.listMachines, request: (_, cast) => named(cast) },
  ...[machine.drainMachine, machine.resumeMachine].map((method) => ({
    method,
    request: machineOf,
    except: { [FOREIGN]: "MACHINE_NOT_FOUND" as const },
  })),
];
