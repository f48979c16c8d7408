/** What the queue of a deployment works with. */
import type { MetricsOf } from "../metrics/metrics.ts";
import type { Storage } from "../storage/storage.ts";
import type { DeploymentTracing } from "../tracing/tracing.ts";
import type { Attempts } from "./attempts.ts";
import type { Changes } from "./changes.ts";
import type { Dispatcher } from "./dispatcher.ts";
import type { RunTimes } from "./estimate.ts";
import type { Expirer } from "./expirer.ts";
import type { Peers } from "./peers.ts";
import type { RecentTasks } from "./recent.ts";

export interface QueueOptions {
  readonly deploymentId: string;
  readonly storage: Storage;
  readonly dispatcher: Dispatcher;
  readonly attempts: Attempts;
  /** The other nodes on the same database; undefined where there are none. */
  readonly peers: Peers | undefined;
  readonly changes: Changes;
  readonly recent: RecentTasks;
  readonly expirer: Expirer;
  readonly runTimes: RunTimes;
  /** How many calls of an endpoint this node can run at a time. */
  readonly slots: (endpoint: string) => number;
  readonly graceMs: number;
  readonly newId: () => string;
  readonly now: () => number;
  /** Default: nothing is counted. */
  readonly metricsOf?: MetricsOf | undefined;
  /** Default: nothing is traced. */
  readonly tracing?: DeploymentTracing | undefined;
}
