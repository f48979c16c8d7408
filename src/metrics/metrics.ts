/**
 * The metrics registry of a node. There is one per node; components receive it,
 * or a deployment's part of it, and call one method per event. No method waits
 * or throws: counting a finished call costs less than a microsecond (`npm run
 * bench -- metrics`).
 *
 * `@prometheus-io/client` was measured as the alternative. It takes several
 * times as long per call, because it takes labels as objects and checks them
 * each time. It knows nothing of organizations, so ownership would have to be
 * read from a label. It neither bounds the number of series nor ends those of a
 * deployment at once, and it writes all text in one piece.
 */
import { CustomFamilies } from "./custom-families.ts";
import type { CustomMetrics } from "./custom-metrics.ts";
import { type Declaration, type LABELS, METRICS, type MetricKey } from "./declarations.ts";
import { type AnySeries, type Group, Metric, type Owned, type Owner } from "./metric.ts";

/** Maximum label sets per metric and organization; a histogram counts once. */
const MAX_SERIES_PER_METRIC = 2_000;

interface MetricsOptions {
  /** The name of this node; the label `node`. */
  readonly node: string;
  readonly now: () => number;
  readonly maxSeries?: number;
}

type MetricTable = {
  readonly [Key in MetricKey]: Metric<(typeof METRICS)[Key]>;
};

/** A deployment as metrics know it. */
export interface MeasuredDeployment {
  readonly organizationId: string;
  /** The key of `byId`. Default: `byId` does not find it. */
  readonly deploymentId?: string;
  /** Names for the labels. */
  readonly organization: string;
  readonly deployment: string;
}

/** Finds the metrics of a deployment; undefined when it is not on this node. */
type DeploymentMetricsOf = (deploymentId: string) => DeploymentMetrics | undefined;

/** What workers take of their node. */
interface ObservedBudget {
  readonly workers: number;
  readonly memoryBytes: number;
  /** Deployments that wait for room. */
  readonly waiting: number;
  /** Workers that were evicted since the start. */
  readonly evictions: number;
  readonly gpus: readonly {
    readonly grants: readonly unknown[];
    readonly leftOut: string | undefined;
  }[];
}

type TokenVerification = (typeof LABELS.verification.values)[number];

export class Metrics {
  readonly node: string;
  readonly #now: () => number;
  readonly #table: MetricTable;
  readonly #own: OwnedTable;
  /** Dropped events by organization. */
  readonly #dropped = new Map<string, OwnedTable["seriesDropped"]>();
  readonly #deployments = new Map<string, CountedDeployment>();
  readonly #byId = new Map<string, DeploymentMetrics>();
  /** The custom metrics of all deployments. */
  readonly custom: CustomFamilies;

  constructor({ node, now, maxSeries = MAX_SERIES_PER_METRIC }: MetricsOptions) {
    this.node = node;
    this.#now = now;
    const create = (declaration: Declaration): Metric =>
      new Metric(declaration, {
        maxSeries,
        onDropped: (owner) => this.#seriesDropped(owner, declaration.name),
      });
    this.#table = mapValues(METRICS, create) as unknown as MetricTable;
    this.custom = new CustomFamilies({
      maxSeries,
      onDropped: (owner, metric, events) => this.#seriesDropped(owner, metric, events),
    });
    const owner: Owner = { organizationId: undefined, labels: [["node", node]] };
    this.#own = this.#ownedBy(owner, "node") as OwnedTable;
    this.#own.startTime.with()?.set(Math.round(now() / 1_000 - process.uptime()), now());
  }

  /** All platform metrics, in the order of declaration. */
  get all(): readonly Metric[] {
    return Object.values(this.#table) as unknown as Metric[];
  }

  /** The groups of one organization. */
  groupsOf(organizationId: string): Group[] {
    const own = this.all.flatMap((metric) => metric.groups.get(organizationId) ?? []);
    return [...own, ...this.custom.groupsOf(organizationId)];
  }

  /** All organizations with series. */
  get organizations(): ReadonlySet<string> {
    const found = new Set<string>();
    for (const { groups } of this.all) {
      for (const [organizationId, { size }] of groups) {
        if (organizationId !== undefined && size > 0) {
          found.add(organizationId);
        }
      }
    }
    return found;
  }

  /**
   * Returns the metrics of a deployment, which live until `end` is called on
   * them. There is one per name: a second call returns the same, and another
   * deployment with the name ends the previous one. The owner of the running
   * deployment ends it when the deployment leaves the node.
   */
  deployment(measured: MeasuredDeployment): DeploymentMetrics {
    const { organizationId, organization, deployment, deploymentId } = measured;
    const key = JSON.stringify([organizationId, deployment]);
    const existing = this.#deployments.get(key);
    if (existing && existing.deploymentId === deploymentId) {
      return existing.metrics;
    }
    existing?.metrics.end();
    const owner: Owner = {
      organizationId,
      labels: [
        ["organization", organization],
        ["deployment", deployment],
        ["node", this.node],
      ],
    };
    const owned = this.#ownedBy(owner, "deployment");
    const custom = this.custom.add(owner, deployment, {
      onUnread: (times) => owned.metricsUnread.with()?.add(times),
    });
    const created = new DeploymentMetrics(owned, {
      now: this.#now,
      custom,
      onEnd: () => {
        this.custom.remove(custom);
        this.#ended(key, created);
      },
    });
    this.#deployments.set(key, { organizationId, deploymentId, metrics: created });
    if (deploymentId !== undefined) {
      this.#byId.set(deploymentId, created);
    }
    return created;
  }

  /** The deployments that are measured on this node and have an id. */
  *measured(): Iterable<CountedDeployment & { readonly deploymentId: string }> {
    for (const { organizationId, deploymentId, metrics } of this.#deployments.values()) {
      if (deploymentId !== undefined) {
        yield { organizationId, deploymentId, metrics };
      }
    }
  }

  readonly byId: DeploymentMetricsOf = (deploymentId) => this.#byId.get(deploymentId);

  /** A token was verified. */
  tokenVerified(verification: TokenVerification): void {
    this.#own.tokenVerifications.with(verification)?.add();
  }

  /** A connection was closed at once because too many were open, in total or of its address. */
  connectionRefused(bound: "total" | "address"): void {
    this.#own.connectionsRefused.with(bound)?.add();
  }

  /** Whether hints of other nodes arrive. */
  notifierObserved(up: boolean): void {
    this.#own.notifierUp.with()?.set(up ? 1 : 0, this.#now());
  }

  /** Whether a cell, which has a part of the tasks, answers. */
  cellObserved(cell: string, up: boolean): void {
    this.#own.cellUp.with(cell)?.set(up ? 1 : 0, this.#now());
  }

  /** An operation of the database has ended or failed. */
  storageOperationFinished(finished: {
    readonly operation: string;
    readonly result: "ok" | "unavailable" | "error";
    readonly seconds: number;
  }): void {
    const { operation, result, seconds } = finished;
    this.#own.storageOperations.with(operation, result)?.observe(seconds);
  }

  /** Counts what a storage tells of its operations; `blame` says which kind of failure was thrown. */
  storageObserver(
    blame: (thrown: unknown) => "unavailable" | "error",
  ): (operation: string, tookMs: number, err?: unknown) => void {
    return (operation, tookMs, err) => {
      const result = err === undefined ? "ok" : blame(err);
      this.storageOperationFinished({ operation, result, seconds: tookMs / 1_000 });
    };
  }

  /** What workers may take of the node. */
  budgetLimited({ workers, memoryBytes }: Pick<ObservedBudget, "workers" | "memoryBytes">): void {
    const nowMs = this.#now();
    this.#own.nodeWorkersLimit.with()?.set(workers, nowMs);
    this.#own.nodeWorkersMemoryLimit.with()?.set(memoryBytes, nowMs);
  }

  /** What workers take of the node, or wait for, has changed. */
  budgetUsed({ workers, memoryBytes, waiting, evictions, gpus }: ObservedBudget): void {
    const nowMs = this.#now();
    this.#own.nodeWorkers.with()?.set(workers, nowMs);
    this.#own.nodeWorkersMemory.with()?.set(memoryBytes, nowMs);
    this.#own.nodeWaiting.with()?.set(waiting, nowMs);
    this.#own.nodeEvictions.with()?.reach(evictions);
    if (gpus.length > 0) {
      const counts = { free: 0, held: 0, left_out: 0 };
      for (const { grants, leftOut } of gpus) {
        counts[leftOut !== undefined ? "left_out" : grants.length > 0 ? "held" : "free"] += 1;
      }
      for (const [state, count] of Object.entries(counts)) {
        this.#own.nodeGpus.with(state)?.set(count, nowMs);
      }
    }
  }

  /** Resource usage of the process, from `process.ts`. */
  processObserved(observed: {
    readonly cpuSeconds: number;
    readonly memoryBytes: number;
    /** By the declared percentiles. */
    readonly delaySeconds: { readonly [percentile: string]: number };
  }): void {
    const nowMs = this.#now();
    this.#own.cpu.with()?.reach(observed.cpuSeconds);
    this.#own.memory.with()?.set(observed.memoryBytes, nowMs);
    for (const [percentile, seconds] of Object.entries(observed.delaySeconds)) {
      this.#own.eventLoopDelay.with(percentile)?.set(seconds, nowMs);
    }
  }

  #ended(key: string, metrics: DeploymentMetrics): void {
    const known = this.#deployments.get(key);
    if (known?.metrics === metrics) {
      this.#deployments.delete(key);
      if (known.deploymentId !== undefined) {
        this.#byId.delete(known.deploymentId);
      }
    }
  }

  #ownedBy(owner: Owner, of: Declaration["of"]): OwnedTable {
    const owned = Object.entries(this.#table)
      .filter(([, metric]) => metric.declaration.of === of)
      .map(([key, metric]) => [key, metric.of(owner)]);
    return Object.fromEntries(owned);
  }

  #seriesDropped({ organizationId, labels }: Owner, metric: string, events = 1): void {
    if (organizationId === undefined || metric === METRICS.seriesDropped.name) {
      return;
    }
    let dropped = this.#dropped.get(organizationId);
    if (dropped === undefined) {
      const own = labels.filter(([name]) => name !== "deployment");
      dropped = this.#table.seriesDropped.of({ organizationId, labels: own });
      this.#dropped.set(organizationId, dropped);
    }
    dropped.with(metric)?.add(events);
  }
}

/** The metrics of a deployment with its owner. */
interface CountedDeployment {
  readonly organizationId: string;
  readonly deploymentId: string | undefined;
  readonly metrics: DeploymentMetrics;
}

function mapValues<Key extends string, Value, Result>(
  record: Readonly<Record<Key, Value>>,
  change: (value: Value) => Result,
): Record<Key, Result> {
  const entries = Object.entries<Value>(record).map(([key, value]) => [key, change(value)]);
  return Object.fromEntries(entries);
}

// The metrics recorder of one deployment: one method per event.

export type Protocol = "http" | "rest" | "connect" | "grpc" | "grpc_web";

/** How an attempt or a task ended. */
export type TaskOutcome =
  | "success"
  | "failure"
  | "cancelled"
  /** The task was not started in time. */
  | "expired"
  /** The attempt failed, and the task will be retried. */
  | "retried"
  /** The attempt was given up, not by its own fault. */
  | "returned";

/** Why a worker was replaced: the label `cause`. */
export type ReplacementCause =
  | "crashed"
  | "gpu"
  | "gpu_memory"
  | "killed"
  | "memory"
  | "unresponsive"
  | "start_failed";

/** Routes of one mounted server that are counted by themselves; the others count as the server. */
const MAX_ROUTES = 100;

/** One owner's part of every metric. */
type OwnedTable = {
  readonly [Key in MetricKey]: Owned<(typeof METRICS)[Key]>;
};

interface DeploymentMetricsOptions {
  readonly now: () => number;
  readonly custom: CustomMetrics;
  readonly onEnd: () => void;
}

export class DeploymentMetrics {
  readonly #metrics: OwnedTable;
  readonly #options: DeploymentMetricsOptions;
  /** Routes of mounted servers that have been counted, by the server's path. */
  readonly #routes = new Map<string, Set<string>>();

  constructor(metrics: OwnedTable, options: DeploymentMetricsOptions) {
    this.#metrics = metrics;
    this.#options = options;
  }

  /** The custom metrics of its service. */
  get custom(): CustomMetrics {
    return this.#options.custom;
  }

  /** The series of one of its metrics. */
  seriesOf(key: MetricKey): readonly AnySeries[] {
    // A deployment owns no part of the metrics of nodes.
    return (this.#metrics[key] as Owned | undefined)?.series ?? [];
  }

  /** A call has ended; `code` is a code of Connect (such as `not_found`) or `ok`. */
  requestFinished(endpoint: string, { protocol, code, seconds }: FinishedRequest): void {
    this.#metrics.requests.with(endpoint, protocol, code)?.add();
    this.#metrics.requestDuration.with(endpoint, protocol)?.observe(seconds);
  }

  /** The name under which a request is counted that a mounted server has answered by this route. */
  routeOf(mount: string, route: string | undefined): string {
    if (route === undefined) {
      return mount;
    }
    const known = this.#routes.get(mount) ?? new Set();
    this.#routes.set(mount, known);
    if (known.size >= MAX_ROUTES && !known.has(route)) {
      return mount;
    }
    known.add(route);
    return route;
  }

  /** A new task was stored. */
  taskSubmitted(endpoint: string): void {
    this.#metrics.tasksSubmitted.with(endpoint)?.add();
  }

  /** An attempt started, `waitSeconds` after the task was due. */
  taskStarted(endpoint: string, waitSeconds: number): void {
    this.#metrics.tasksStarted.with(endpoint)?.add();
    this.#metrics.queueWait.with(endpoint)?.observe(Math.max(waitSeconds, 0));
  }

  /** A batch of calls or tasks went to a worker; the oldest had waited this long. */
  batchFormed(endpoint: string, size: number, waitSeconds: number): void {
    this.#metrics.batchSize.with(endpoint)?.observe(size);
    this.#metrics.batchWait.with(endpoint)?.observe(Math.max(waitSeconds, 0));
  }

  /** An attempt ended after `runSeconds`; undefined when a task ended without an attempt. */
  taskFinished(endpoint: string, outcome: TaskOutcome, runSeconds: number | undefined): void {
    this.#metrics.tasksFinished.with(endpoint, outcome)?.add();
    if (runSeconds !== undefined) {
      this.#metrics.runTime.with(endpoint)?.observe(Math.max(runSeconds, 0));
    }
  }

  /** Sets the length of an endpoint's queue; call it every few seconds. */
  queueObserved(endpoint: string, { queued, running, oldestSeconds }: ObservedQueue): void {
    const nowMs = this.#options.now();
    this.#metrics.queueLength.with(endpoint)?.set(queued, nowMs);
    this.#metrics.tasksRunning.with(endpoint)?.set(running, nowMs);
    this.#metrics.oldestWaiting.with(endpoint)?.set(oldestSeconds, nowMs);
  }

  /** Sets the total resource usage of the workers; call it every few seconds. */
  workersObserved({ up, starting, desired, cpuSeconds, memoryBytes }: ObservedWorkers): void {
    const nowMs = this.#options.now();
    this.#metrics.workers.with()?.set(up, nowMs);
    this.#metrics.workersStarting.with()?.set(starting, nowMs);
    this.#metrics.workersDesired.with()?.set(desired, nowMs);
    this.#metrics.workerCpu.with()?.reach(cpuSeconds);
    this.#metrics.workerMemory.with()?.set(memoryBytes, nowMs);
  }

  /** The egress proxy opened or refused an outward connection. */
  egressDecided(decision: "allowed" | "refused"): void {
    this.#metrics.egressConnections.with(decision)?.add();
  }

  /** A worker ended unexpectedly. */
  workerReplaced(cause: ReplacementCause): void {
    this.#metrics.workerRestarts.with(cause)?.add();
  }

  /** The deployment has left this node: ends its series. */
  end(): void {
    for (const owned of Object.values(this.#metrics)) {
      owned.end();
    }
    this.custom.end();
    this.#options.onEnd();
  }
}

interface FinishedRequest {
  readonly protocol: Protocol;
  readonly code: string;
  readonly seconds: number;
}

interface ObservedQueue {
  readonly queued: number;
  readonly running: number;
  readonly oldestSeconds: number;
}

interface ObservedWorkers {
  readonly up: number;
  readonly starting: number;
  /** What the load asks for, within the bounds. */
  readonly desired: number;
  /** Of all past and present workers, since the deployment came to this node. */
  readonly cpuSeconds: number;
  readonly memoryBytes: number;
}
