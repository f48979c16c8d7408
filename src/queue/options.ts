/** What the queue of a deployment is made with. */
import type { DeploymentMetrics } from "../metrics/metrics.ts";
import type { Pool } from "../pool/pool.ts";
import type { Notifier } from "../storage/notifier.ts";
import type { Storage } from "../storage/storage.ts";
import type { IdSource } from "../tasks/id.ts";
import type { DeploymentTracing } from "../tracing/tracing.ts";
import type { UnitNames } from "./attempts.ts";
import type { Maintenance } from "./maintenance/maintenance.ts";
import type { UnservedPolicy } from "./maintenance/unserved-tasks.ts";
import type { StreamedAttemptsOptions } from "./pieces/streamed-attempts.ts";
import type { Retention } from "./submission.ts";

export interface QueueOptions extends Omit<StreamedAttemptsOptions, "changes"> {
  readonly deploymentId: string;
  readonly storage: Storage;
  /** Carries hints between nodes; undefined where there is one node only. */
  readonly notifier: Notifier | undefined;
  readonly maintenance: Pick<Maintenance, "expirer" | "leases" | "register">;
  readonly pool: Pool;
  readonly newId: IdSource;
  /** The units that its functions have reported. Default: those of its own. */
  readonly units?: UnitNames;
  readonly now: () => number;
  /** Callers that may wait for tasks at a time. */
  readonly maxWaiting: number;
  /** Time between the abort of an attempt and the kill of its worker. */
  readonly graceMs: number;
  readonly retention: () => Retention;
  /** The number of calls of an endpoint that this node can run at a time. */
  readonly slots: (endpoint: string) => number;
  /** The worker that an endpoint waits for, for people. Default: it waits for none. */
  readonly awaited?: (endpoint: string) => string | undefined;
  /** Tasks of this endpoint are taken and not started. Default: none is paused. */
  readonly isPaused?: (endpoint: string) => boolean;
  /** Undefined where a service has no revisions. */
  readonly revisions?: UnservedPolicy | undefined;
  /** Default: nothing is counted. */
  readonly metrics?: DeploymentMetrics | undefined;
  /** Default: nothing is traced. */
  readonly tracing?: DeploymentTracing | undefined;
  /** The storage answered a claim, or the node's maintenance, or failed to. */
  onStorage(work: "claims" | "heartbeat", answers: boolean): void;
  /** A schedule of the deployment has this time. Default: it has none. */
  readonly onSchedule?: (atMs: number) => void;
  /** Tasks may be waiting that have no free slot: more workers may be wanted. */
  onTasksWait(): void;
  /** Tasks wait of an endpoint that is not known here, or not yet. Default: nobody can tell of it. */
  readonly onUnknown?: (() => void) | undefined;
}
