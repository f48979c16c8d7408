/**
 * The part of the hosting port for machines: those that are drained, by their names, and the
 * workers of an organization on all of them.
 */
import type { Deed } from "../accounts/deed.ts";
import type { NodeWorkers } from "./nodes.ts";

export interface MachineKey {
  /** Whose it is: the organization that it joined; undefined for one of nodes. */
  readonly organizationId: string | undefined;
  readonly machine: string;
}

export interface DrainedMachine {
  readonly machine: string;
  readonly drainedAtMs: number;
  /** An e-mail address, `token <name>`, or `operator`. */
  readonly drainedBy: string;
}

/** The workers of one deployment on one node. */
export interface DeploymentWorkers extends NodeWorkers {
  readonly nodeId: string;
  /** The name of the node's machine. */
  readonly nodeMachine: string;
  readonly deploymentId: string;
  readonly deployment: string;
}

export interface MachineStorage {
  /**
   * Notes a machine as drained; `limit`: when the organization has that many. Draining one that is
   * drained changes nothing, and neither does resuming one that is not.
   */
  drainMachine(
    parameters: Deed & MachineKey & { readonly limit: number },
  ): Promise<{ readonly outcome: "drained" | "limit" }>;

  resumeMachine(parameters: Deed & MachineKey): Promise<void>;

  /** Lists the drained machines of an organization, or of the nodes, by name. */
  listDrained(parameters: Pick<MachineKey, "organizationId">): Promise<DrainedMachine[]>;

  /** The reports of living nodes about the workers of an organization, by node and deployment. */
  listAllWorkers(parameters: {
    readonly organizationId: string;
    readonly nowMs: number;
  }): Promise<DeploymentWorkers[]>;
}
