/** The port behind which machines are started: one adapter for each kind of cluster. */

/** A machine to be started. */
export interface MachineOrder {
  /** A UUID. The cluster keeps it with the machine, so that `list` finds it again. */
  readonly id: string;
  readonly deploymentId: string;
  /** The variables that `tessera worker` joins with. The token is among them. */
  readonly env: { readonly [name: string]: string };
  /** When it has to have ended, at the latest. */
  readonly endsAtMs: number;
}

/** A machine as the cluster knows it. */
export interface ClusterMachine {
  readonly id: string;
  readonly deploymentId: string;
  /** When the cluster took it. */
  readonly startedAtMs: number;
  /** The cluster has taken it, and does not run it yet: it waits for its turn or for room. */
  readonly isWaiting: boolean;
  /** It has ended, and waits to be removed. */
  readonly isOver: boolean;
  /** What the cluster says of it: why it waits, or how it ended. May be empty. */
  readonly reason: string;
}

export interface Machines {
  /**
   * Starts a machine. Resolves when the cluster has taken it, which need not mean that it runs.
   * Rejects with what the cluster says; then there is no machine.
   */
  start(order: MachineOrder): Promise<void>;

  /**
   * Lets a machine finish what it runs, and end; with `force`, ends it at once. Removes what is
   * left of one that is over. Saying it again changes nothing.
   */
  stop(
    machine: Pick<ClusterMachine, "id" | "deploymentId">,
    how?: { readonly force: boolean },
  ): Promise<void>;

  /** All machines that were started here, also by a launcher that was killed. Rejects when the cluster does not say. */
  list(): Promise<readonly ClusterMachine[]>;
}

/** Labels of a machine, by which a cluster that keeps labels finds it again. */
export const MACHINE_LABEL = "tessera.dev/machine";
export const DEPLOYMENT_LABEL = "tessera.dev/deployment";

/** The name of a machine in such a cluster. */
export function nameOf({ id }: Pick<MachineOrder, "id">): string {
  return `tessera-${id}`;
}

/** How long a machine may live, for a cluster that asks: at least a minute. */
export function secondsLeft({ endsAtMs }: Pick<MachineOrder, "endsAtMs">, nowMs: number): number {
  return Math.max(60, Math.round((endsAtMs - nowMs) / 1_000));
}
