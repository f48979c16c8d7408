/**
 * The part of the hosting port for nodes: heartbeats, and what each reports
 * about its deployments.
 */
import type { DeploymentRecord } from "../accounts/organizations.ts";
import type { MachineLabels } from "../deployment-settings.ts";
import type { DeploymentKey } from "./deployment-key.ts";
import type { EndpointSummary } from "./revisions.ts";

/** What a node says of itself with each heartbeat. */
export interface NodeFacts {
  readonly version: string;
  /** Where people reach the platform; undefined for a node of an earlier version. */
  readonly platformUrl?: string;
  /** What holds the workers of deployments: `kernel` or `permission`. */
  readonly sandbox: string;
  /** Workers that run, and how many may. */
  readonly workers: number;
  readonly maxWorkers: number;
  /** What the workers use, and what they may use together. */
  readonly memoryBytes: number;
  readonly maxMemoryBytes: number;
  /** Workers that wait for room on the node. */
  readonly waiting: number;
  /** Of the disk that has the data folder. */
  readonly freeDiskBytes: number;
  readonly diskBytes: number;
  /** It is stopping: takes no more work and lets running calls finish. Undefined: no. */
  readonly draining?: boolean;
  /** Its GPUs, by their numbers. Undefined: none. */
  readonly gpus?: readonly NodeGpu[];
  /** Its labels. Undefined for a node of an earlier version. */
  readonly labels?: MachineLabels;
  /** Of its machine. Undefined for a node of an earlier version. */
  readonly load?: MachineLoad;
}

/** How loaded a machine is, by all of its programs together. */
export interface MachineLoad {
  readonly processors: number;
  /** How many of them were busy on average since the last time that it told. */
  readonly busyProcessors: number;
  readonly memoryBytes: number;
  /** What is used and cannot be freed. */
  readonly usedMemoryBytes: number;
}

/** A GPU of a node. */
export interface NodeGpu {
  readonly index: number;
  readonly name: string;
  readonly memoryBytes: number;
  /** What all programs of the machine use of it. */
  readonly usedBytes: number;
  /** Undefined for a whole GPU, and else its number on that. */
  readonly slice?: { readonly index: number };
  /** How much of it workers have, from 0 to 1. */
  readonly dealt: number;
  /** The deployments whose workers have it, as `organization/deployment`. */
  readonly holders: readonly string[];
  /** Why no worker is started on it; undefined: nothing is wrong. */
  readonly leftOut?: string;
}

export interface NodeRecord {
  readonly nodeId: string;
  /** The URL at which other nodes reach it. */
  readonly url: string | undefined;
  readonly startedAtMs: number;
  /** When it sent its last heartbeat. */
  readonly heardAtMs: number;
  /** The name of its machine. */
  readonly machine: string;
  /** Undefined for a node of an earlier version. */
  readonly facts: NodeFacts | undefined;
}

/** The nodes that live, including the one that asks. */
export interface LivingNodes {
  readonly living: number;
  /** Those whose machines are not drained. */
  readonly taking: number;
  /** Whether the machine of the one that asks is drained. */
  readonly isDrained: boolean;
}

export type HostingStatus = "starting" | "ready" | "degraded" | "failed" | "stopped";

/**
 * Of one node: `waiting` serves the target revision, but may start no workers of it, and none
 * has joined. That degrades the deployment unless other nodes run it.
 */
export type ReportedStatus = HostingStatus | "waiting";

/** A node's report about its share of a deployment. */
export interface DeploymentReport extends DeploymentKey {
  readonly status: ReportedStatus;
  /** An explanation for people; may be empty. Cut off after 8,000 characters. */
  readonly reason: string;
  /** The revision that serves on this node now. */
  readonly revision: number | undefined;
  /** The revision that the report is about. */
  readonly targetRevision: number | undefined;
  /** The version of the deployment that the report is about. */
  readonly version: number;
  /** Ready workers. */
  readonly workers: number;
}

/** What a living node runs of a deployment, or is to run. */
interface DeploymentPlacement extends Pick<DeploymentReport, "revision" | "workers"> {
  readonly nodeId: string;
  readonly status: HostingStatus;
}

/** A worker of a deployment, as its node describes it. */
export interface WorkerRecord {
  readonly workerId: string;
  /** 0: services have no revisions there. */
  readonly revision: number;
  /** The other machine that it runs on; undefined: that of the node. */
  readonly machine:
    | {
        readonly hostname: string;
        readonly platform: string;
        readonly version: string;
        readonly labels: MachineLabels;
        /** Absent where it does not tell. */
        readonly load?: MachineLoad;
        /** It takes no new calls. Absent: it does. */
        readonly isDrained?: boolean;
        /** When it was heard of last; absent while that is shorter ago than 10 s. */
        readonly heardAtMs?: number;
      }
    | undefined;
  readonly startedAtMs: number;
  /** Calls under way. */
  readonly calls: number;
  readonly ready: boolean;
  /** Why the service does not run at it; absent where nothing is wrong. */
  readonly fault?: string;
  /** The GPUs of the node that it has, for people; absent for none. */
  readonly gpus?: readonly string[];
}

/** The workers of one node, the oldest first. */
export interface NodeWorkers {
  readonly workers: readonly WorkerRecord[];
  /** How many more there are. */
  readonly omitted: number;
  /** Workers that should have joined this node, as those that have. Absent: none. */
  readonly wanted?: number;
  /** The machines of launchers that have joined, do not leave and are not drained. Absent: none. */
  readonly launched?: readonly LaunchedMachine[];
}

/** A machine that a launcher has started. */
export interface LaunchedMachine {
  /** The id that its token says. */
  readonly machine: string;
  /** A worker of it takes calls. */
  readonly ready: boolean;
}

/** The state of a deployment, aggregated over all nodes. */
export interface DeploymentState {
  readonly status: HostingStatus;
  readonly reason: string;
  /** The revision that serves now; the oldest one while nodes differ. */
  readonly revision: number | undefined;
  readonly workers: number;
  /** Nodes that serve it. */
  readonly nodes: number;
  /** The version of the deployment that all living nodes have reported on; 0 without reports. */
  readonly observedVersion: number;
  /** Sorted by node. */
  readonly placements: readonly DeploymentPlacement[];
  readonly secretNames: readonly string[];
  /** Names of the secrets that workers of the target revision do not get. */
  readonly withheldSecrets: readonly string[];
  /** Endpoints of the target revision. */
  readonly endpoints: readonly EndpointSummary[];
}

export interface NodeStorage {
  /**
   * Heartbeat: the node counts as alive for `ttlMs` from now. Where nodes share the database,
   * its clock decides, here and below.
   */
  beat(parameters: {
    readonly nodeId: string;
    readonly machine?: string;
    readonly url?: string;
    readonly facts?: NodeFacts;
    readonly nowMs: number;
    readonly ttlMs: number;
  }): Promise<LivingNodes>;

  /** Lists the living nodes, sorted by id. */
  listNodes(parameters: { readonly nowMs: number }): Promise<NodeRecord[]>;

  /** Removes a node that shuts down, with its reports. */
  endNode(parameters: { readonly nodeId: string }): Promise<void>;

  /**
   * Replaces the node's reports about these deployments; drops reports about deleted ones. The
   * first that says that a target revision serves is noted with the revision.
   */
  reportDeployments(parameters: {
    readonly nowMs: number;
    readonly nodeId: string;
    readonly reports: readonly DeploymentReport[];
  }): Promise<void>;

  /** Removes the node's reports about these deployments. */
  withdrawReports(parameters: {
    readonly nodeId: string;
    readonly deployments: readonly DeploymentKey[];
  }): Promise<void>;

  /**
   * Replaces the node's report about its workers. Returns the ids of those deployments that
   * it has reported before; of others nothing is stored.
   */
  reportWorkers(parameters: {
    readonly nodeId: string;
    readonly reports: readonly (DeploymentKey & NodeWorkers)[];
  }): Promise<string[]>;

  /** The reports of living nodes about the workers of a deployment, by node. */
  listWorkers(
    parameters: DeploymentKey & { readonly nowMs: number },
  ): Promise<(NodeWorkers & { readonly nodeId: string })[]>;

  /**
   * Returns the states of an organization's deployments by the reports of
   * living nodes, in the order of the parameter.
   */
  describeDeployments(parameters: {
    readonly organizationId: string;
    readonly deployments: readonly DeploymentRecord[];
    readonly nowMs: number;
  }): Promise<DeploymentState[]>;
}
