/** The metrics recorder of one deployment: one method per event. */
import type { CustomMetrics } from "./custom-metrics.ts";
import type { METRICS, MetricKey } from "./declarations.ts";
import type { AnySeries, Owned } from "./metric.ts";

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
export type OwnedTable = {
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
