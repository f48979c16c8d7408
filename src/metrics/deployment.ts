/** What is counted for one deployment: a function per event. */
import type { CustomMetrics } from "./custom-metrics.ts";
import type { METRICS, MetricKey } from "./declarations.ts";
import type { Owned } from "./metric.ts";

export type Protocol = "http" | "rest" | "connect" | "grpc" | "grpc_web";

/** How an attempt or a task ended. */
export type TaskOutcome =
  | "success"
  | "failure"
  | "cancelled"
  /** It was not started in time. */
  | "expired"
  /** The attempt failed, and the task will be tried again. */
  | "retried"
  /** The attempt was given up without its fault. */
  | "returned";

/** Why a worker had to be replaced. */
export type WorkerEnd = "crashed" | "killed" | "memory" | "unresponsive" | "start_failed";

/** Every metric, as far as one owner counts it. */
export type OwnedTable = {
  readonly [Key in MetricKey]: Owned<(typeof METRICS)[Key]>;
};

export interface DeploymentMetricsOptions {
  readonly now: () => number;
  readonly custom: CustomMetrics;
  readonly onEnd: () => void;
}

export class DeploymentMetrics {
  readonly #metrics: OwnedTable;
  readonly #options: DeploymentMetricsOptions;

  constructor(metrics: OwnedTable, options: DeploymentMetricsOptions) {
    this.#metrics = metrics;
    this.#options = options;
  }

  /** What its service counts itself. */
  get custom(): CustomMetrics {
    return this.#options.custom;
  }

  /** A call was answered; `code` in the words of Connect (`not_found`), or `ok`. */
  requestFinished(endpoint: string, { protocol, code, seconds }: FinishedRequest): void {
    this.#metrics.requests.with(endpoint, protocol, code)?.add();
    this.#metrics.requestDuration.with(endpoint, protocol)?.observe(seconds);
  }

  /** A task was stored that was not there before. */
  taskSubmitted(endpoint: string): void {
    this.#metrics.tasksSubmitted.with(endpoint)?.add();
  }

  /** An attempt began, `waitSeconds` after the task was due. */
  taskStarted(endpoint: string, waitSeconds: number): void {
    this.#metrics.tasksStarted.with(endpoint)?.add();
    this.#metrics.queueWait.with(endpoint)?.observe(Math.max(waitSeconds, 0));
  }

  /** An attempt ended after `runSeconds`, or a task without one (undefined). */
  taskFinished(endpoint: string, outcome: TaskOutcome, runSeconds: number | undefined): void {
    this.#metrics.tasksFinished.with(endpoint, outcome)?.add();
    if (runSeconds !== undefined) {
      this.#metrics.runTime.with(endpoint)?.observe(Math.max(runSeconds, 0));
    }
  }

  /** How long the queue of an endpoint is; to be told every few seconds. */
  queueObserved(endpoint: string, { queued, running, oldestSeconds }: ObservedQueue): void {
    const nowMs = this.#options.now();
    this.#metrics.queueLength.with(endpoint)?.set(queued, nowMs);
    this.#metrics.tasksRunning.with(endpoint)?.set(running, nowMs);
    this.#metrics.oldestWaiting.with(endpoint)?.set(oldestSeconds, nowMs);
  }

  /** What the workers take together; to be told every few seconds. */
  workersObserved({ up, cpuSeconds, memoryBytes }: ObservedWorkers): void {
    const nowMs = this.#options.now();
    this.#metrics.workers.with()?.set(up, nowMs);
    this.#metrics.workerCpu.with()?.reach(cpuSeconds);
    this.#metrics.workerMemory.with()?.set(memoryBytes, nowMs);
  }

  /** A worker ended without having been asked to. */
  workerReplaced(cause: WorkerEnd): void {
    this.#metrics.workerRestarts.with(cause)?.add();
  }

  /** The deployment is gone from this node: its series are left out from now on. */
  end(): void {
    for (const owned of Object.values(this.#metrics)) {
      owned.end();
    }
    this.custom.end();
    this.#options.onEnd();
  }
}

export interface FinishedRequest {
  readonly protocol: Protocol;
  readonly code: string;
  readonly seconds: number;
}

export interface ObservedQueue {
  readonly queued: number;
  readonly running: number;
  readonly oldestSeconds: number;
}

export interface ObservedWorkers {
  readonly up: number;
  /** Since the deployment came to this node, of all its workers, those that are gone included. */
  readonly cpuSeconds: number;
  readonly memoryBytes: number;
}
