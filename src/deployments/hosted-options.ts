import type { Metrics } from "../metrics/metrics.ts";
import type { StartGate } from "../pool/start-gate.ts";
import type { Rounds } from "../queue/maintenance.ts";
import type { Notifier } from "../storage/notifier.ts";
import type { Storage } from "../storage/storage.ts";
import type { Tracing } from "../tracing/tracing.ts";
import type { RolloutPolicy } from "./rollout.ts";
import type { Scale } from "./scaling.ts";
import type { WorkersOptions } from "./workers.ts";

export interface HostedOptions extends WorkersOptions, RolloutPolicy {
  /** The organization it belongs to; with the service's name it is the deployment's. */
  readonly organization: string;
  /**
   * Which of the platform's deployments it is, with its name as
   * `organization/app`. Default: the only one there is, called by its
   * organization and its service.
   */
  readonly record?: { readonly deploymentId: string; readonly name: string };
  readonly storage: Storage;
  /** How nodes on the same database tell each other; undefined where there is one node only. */
  readonly notifier: Notifier | undefined;
  /** The rounds of the node, which began before. */
  readonly rounds: Rounds;
  readonly newId: () => string;
  readonly now: () => number;
  /** Where the node's workers wait for room to start. Default: all start at once. */
  readonly starts?: StartGate | undefined;
  /** Worker processes at first. */
  readonly workers: number;
  /** Lets their number follow the load. Default: it stays. */
  readonly scale?: Scale;
  /** Callers that may wait for tasks at a time. */
  readonly maxWaiting: number;
  /** Where the node counts, and the organization whose series these are. Default: nothing is counted. */
  readonly counted?: { readonly metrics: Metrics; readonly organizationId: string } | undefined;
  /** Where the node traces. Default: nothing is traced. */
  readonly tracing?: Tracing | undefined;
  /** `ready` or `status` may have changed. */
  onReadiness(): void;
}
