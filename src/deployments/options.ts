/** What a deployment is made with. */

import type { Problem } from "../errors.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { NodeBudget } from "../pool/room/budget.ts";
import type { StartGate } from "../pool/room/start-gate.ts";
import type { EndpointManifest, ServiceManifest } from "../protocol/manifest.ts";
import type { HeldPieces } from "../queue/calls/piece-queue.ts";
import type { CallUsage } from "../queue/calls/usage.ts";
import type { Maintenance } from "../queue/maintenance/maintenance.ts";
import type { ReaderThreads } from "../service/input/threads.ts";
import type { PausedEndpoint } from "../storage/accounts/organizations.ts";
import type { FileKeeper } from "../storage/files/keeper.ts";
import type { Notifier } from "../storage/notifier.ts";
import type { Storage } from "../storage/storage.ts";
import type { IdSource } from "../tasks/id.ts";
import type { Tracing } from "../tracing/tracing.ts";
import type { RolloutPolicy } from "./rollout.ts";
import type { Scale } from "./scaling.ts";
import type { WorkersOptions } from "./workers.ts";

export interface DeploymentOptions extends WorkersOptions, RolloutPolicy {
  /** The organization that it belongs to, the first part of its name. */
  readonly organization: string;
  /**
   * The id and the name (`organization/app`) of a deployment of the platform.
   * Default, under `tessera serve`: both are `organization/service`.
   */
  readonly record?: { readonly deploymentId: string; readonly name: string };
  /** The file store for each kind of endpoint. */
  readonly files: { readonly [kind in EndpointManifest["kind"]]: FileKeeper };
  readonly storage: Storage;
  /** Carries hints between nodes; undefined where there is one node only. */
  readonly notifier: Notifier | undefined;
  /** The node's periodic maintenance, already started. */
  readonly maintenance: Maintenance;
  readonly newId: IdSource;
  /** The name of this node, which the ids of its workers begin with. */
  readonly nodeId: string;
  readonly now: () => number;
  /** Limits how many workers of the node start at a time. Default: no limit. */
  readonly starts?: StartGate | undefined;
  /** The node's budget, in which each worker needs room. Default: no limits. */
  readonly budget?: NodeBudget | undefined;
  /** The initial number of workers. */
  readonly workers: number;
  /** The number of workers of a service that comes in. Default: as many as there are. */
  readonly workersOf?: (manifest: ServiceManifest) => number;
  /** Scales the number of workers with the load. Default: it is fixed. */
  readonly scale?: Scale;
  /** How long tasks are kept after their end at most, as the operator allows. Default: 365 days. */
  readonly maxRetentionMs?: number;
  /** How long tasks are kept after their end. Default and 0: as their endpoints say. */
  readonly retentionMs?: () => number;
  /** The endpoints whose tasks are not started. Default: none. */
  readonly pausedEndpoints?: () => readonly PausedEndpoint[];
  /** Limit of callers that wait for tasks at a time. */
  readonly maxWaiting: number;
  /** The node's metrics, and the organization of the series. Default: nothing is counted. */
  readonly counted?: { readonly metrics: Metrics; readonly organizationId: string } | undefined;
  /** Counts what calls of apis use. Default: nothing is counted. */
  readonly callUsage?: Pick<CallUsage, "add"> | undefined;
  /** See `Budgets.refusal`. Default: there are no budgets. */
  readonly budgetRefusal?: (
    kind: EndpointManifest["kind"],
    tokenId: string | undefined,
  ) => Problem | undefined;
  /** The node's tracing. Default: nothing is traced. */
  readonly tracing?: Tracing | undefined;
  /** Where the node reads large bodies. Default: on the serving thread. */
  readonly readers?: ReaderThreads | undefined;
  /** The node's budget of streamed pieces that wait for their readers. Default: one of its own. */
  readonly heldPieces?: HeldPieces | undefined;
  /** See `Rollout.told`. */
  readonly onTold?: (manifest: ServiceManifest, wasOther: boolean) => void;
  /** `ready` or `status` may have changed. */
  onReadiness(): void;
}
