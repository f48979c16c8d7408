/**
 * The measures that are kept over time: a closed list, each taken from one
 * metric of the platform. The recorder and the reader of what nodes kept go by
 * this table.
 */
import { LABELS, type MetricKey } from "../declarations.ts";

export interface Measure {
  readonly metric: MetricKey;
  readonly kind: "counter" | "gauge" | "histogram";
  /** Only series with one of these values of a label. */
  readonly only?: { readonly label: string; readonly values: readonly string[] };
  /** For gauges: how those of endpoints, and of deployments, become one. Default: their sum. */
  readonly over?: "max";
  /** For gauges: `max` where every node shows the same. Default: the sum of the nodes. */
  readonly nodes?: "max";
}

/** Codes of Connect that HTTP writes as 5xx. */
const SERVER_ERRORS = [
  "unknown",
  "deadline_exceeded",
  "unimplemented",
  "internal",
  "unavailable",
  "data_loss",
];

const ERRORS = [...LABELS.code.values.filter((code) => code !== "ok"), "other"];

const finished = (...outcomes: readonly string[]) =>
  ({
    metric: "tasksFinished",
    kind: "counter",
    only: { label: "outcome", values: outcomes },
  }) as const;

/** By the names of `tessera.v1.Metric`, in its order. */
export const MEASURES = {
  calls: { metric: "requests", kind: "counter" },
  call_errors: {
    metric: "requests",
    kind: "counter",
    only: { label: "code", values: ERRORS },
  },
  call_server_errors: {
    metric: "requests",
    kind: "counter",
    only: { label: "code", values: SERVER_ERRORS },
  },
  call_seconds: { metric: "requestDuration", kind: "histogram" },
  tasks_submitted: { metric: "tasksSubmitted", kind: "counter" },
  tasks_started: { metric: "tasksStarted", kind: "counter" },
  tasks_succeeded: finished("success"),
  tasks_failed: finished("failure", "expired"),
  tasks_cancelled: finished("cancelled"),
  tasks_retried: finished("retried"),
  queue_seconds: { metric: "queueWait", kind: "histogram" },
  run_seconds: { metric: "runTime", kind: "histogram" },
  tasks_queued: { metric: "queueLength", kind: "gauge", nodes: "max" },
  tasks_running: { metric: "tasksRunning", kind: "gauge", nodes: "max" },
  oldest_queued_seconds: { metric: "oldestWaiting", kind: "gauge", over: "max", nodes: "max" },
  workers: { metric: "workers", kind: "gauge" },
  workers_starting: { metric: "workersStarting", kind: "gauge" },
  worker_restarts: { metric: "workerRestarts", kind: "counter" },
  worker_memory_bytes: { metric: "workerMemory", kind: "gauge" },
  worker_cpu: { metric: "workerCpu", kind: "counter" },
  workers_desired: { metric: "workersDesired", kind: "gauge" },
} as const satisfies { readonly [name: string]: Measure };

export type MeasureName = keyof typeof MEASURES;

/** All names, in the order of the enum. */
export const MEASURE_NAMES = Object.keys(MEASURES) as readonly MeasureName[];
