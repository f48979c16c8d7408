import type { DeploymentRecord } from "../accounts/organizations.ts";
import type { DeploymentKey } from "./deployment-key.ts";
import type { EndpointSummary } from "./revisions.ts";

export interface NodeRecord {
  readonly nodeId: string;
  /** Where other nodes reach it. */
  readonly url: string | undefined;
  readonly startedAtMs: number;
}

export type HostingStatus = "starting" | "ready" | "degraded" | "failed" | "stopped";

/** What a node says of its share of a deployment. */
export interface DeploymentReport extends DeploymentKey {
  readonly status: HostingStatus;
  /** For people; empty when there is nothing to say. Cut off after 8,000 characters. */
  readonly reason: string;
  /** That serves on this node now. */
  readonly revision: number | undefined;
  /** That the report is about. */
  readonly targetRevision: number | undefined;
  /** Ready ones. */
  readonly workers: number;
}

/** A deployment on all nodes together. */
export interface DeploymentState {
  readonly status: HostingStatus;
  readonly reason: string;
  /** That serves now; the oldest, while nodes differ. */
  readonly revision: number | undefined;
  readonly workers: number;
  /** Nodes that serve it. */
  readonly nodes: number;
  readonly secretNames: readonly string[];
  /** Of the target revision. */
  readonly endpoints: readonly EndpointSummary[];
}

export interface NodeStorage {
  /**
   * A node lives, for `ttlMs` from now. Answers how many live, this one
   * included. Where nodes share the database, its clock decides, here and in
   * what follows.
   */
  beat(parameters: {
    readonly nodeId: string;
    readonly url?: string;
    readonly nowMs: number;
    readonly ttlMs: number;
  }): Promise<number>;

  /** The nodes that live, by id. */
  listNodes(parameters: { readonly nowMs: number }): Promise<NodeRecord[]>;

  /** A node ends in good order: it is gone at once, with what it reported. */
  endNode(parameters: { readonly nodeId: string }): Promise<void>;

  /** Takes the place of what the node reported of these deployments; of one that is deleted, nothing is kept. */
  reportDeployments(parameters: {
    readonly nodeId: string;
    readonly reports: readonly DeploymentReport[];
  }): Promise<void>;

  /** The node no longer has anything to say of these deployments. */
  withdrawReports(parameters: {
    readonly nodeId: string;
    readonly deployments: readonly DeploymentKey[];
  }): Promise<void>;

  /** How deployments of one organization fare, by the reports of living nodes; in the order of the parameter. */
  describeDeployments(parameters: {
    readonly organizationId: string;
    readonly deployments: readonly DeploymentRecord[];
    readonly nowMs: number;
  }): Promise<DeploymentState[]>;
}
