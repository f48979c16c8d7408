/** Reads of the machines of an organization, and what drains them. */
import { queryOptions } from "@tanstack/react-query";
import type { LauncherService } from "../../../../gen/tessera/v1/launcher_pb.js";
import type { MachineService } from "../../../../gen/tessera/v1/machine_pb.js";
import { operator } from "./clients.ts";
import { createClient } from "./rpc.ts";

/** Clients of their own, because the other pages do not call them. */
const machines = createClient<typeof MachineService>("tessera.v1.MachineService");
const launchers = createClient<typeof LauncherService>("tessera.v1.LauncherService");

/** How often they are read again: nodes tell of their workers every 5 s. */
const MACHINES_REFRESH_MS = 5_000;

export const machinesOf = (organization: string) =>
  queryOptions({
    queryKey: ["machines", organization],
    queryFn: ({ signal }) => machines.listMachines({ organization }, { signal }),
    refetchInterval: MACHINES_REFRESH_MS,
  });

export const launchesOf = (organization: string) =>
  queryOptions({
    queryKey: ["launches", organization],
    queryFn: ({ signal }) => launchers.listLaunches({ organization }, { signal }),
    refetchInterval: MACHINES_REFRESH_MS,
  });

/** A machine that was joined, or with `isNode` one of nodes: by its name. */
interface DrainedOrNot {
  readonly organization: string;
  readonly machine: string;
  readonly isNode: boolean;
}

export const drain = ({ isNode, machine, organization }: DrainedOrNot): Promise<unknown> =>
  isNode ? operator.drainNode({ machine }) : machines.drainMachine({ organization, machine });

export const takeBack = ({ isNode, machine, organization }: DrainedOrNot): Promise<unknown> =>
  isNode ? operator.resumeNode({ machine }) : machines.resumeMachine({ organization, machine });
