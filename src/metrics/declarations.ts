/**
 * The declarations of all platform metrics. docs/metrics.md is generated from
 * them, and only declared metrics can be counted.
 *
 * Every label is bounded: its values are listed, or are names that somebody had
 * to create (deployments, endpoints). A value that is not listed counts as
 * `other`. Tokens, tasks, addresses and anything else that a caller writes are
 * never labels.
 */

export interface LabelDeclaration {
  readonly help: string;
  /** All values except `other`; absent for names. */
  readonly values?: readonly string[];
}

const CODES = [
  "ok",
  "canceled",
  "unknown",
  "invalid_argument",
  "deadline_exceeded",
  "not_found",
  "already_exists",
  "permission_denied",
  "resource_exhausted",
  "failed_precondition",
  "aborted",
  "out_of_range",
  "unimplemented",
  "internal",
  "unavailable",
  "data_loss",
  "unauthenticated",
] as const;

export const LABELS = {
  organization: { help: "name of the organization" },
  deployment: { help: "name of the deployment" },
  endpoint: {
    help: "name of the endpoint; of a mounted server its route, such as `/items/{number}`, or its path",
  },
  node: { help: "node that counted it" },
  protocol: {
    help: "how the call came: the deployment's own paths, or an RPC",
    values: ["http", "rest", "connect", "grpc", "grpc_web"],
  },
  code: { help: "Connect code of the answer; `ok` where it went well", values: CODES },
  outcome: {
    help: "how the attempt ended: `retried` and `returned` attempts go back to the queue",
    values: ["success", "failure", "cancelled", "expired", "retried", "returned"],
  },
  verification: {
    help: "what came of a token",
    values: ["valid", "invalid", "expired", "network", "rate_limited", "unavailable"],
  },
  cause: {
    help: "why a worker had to be replaced",
    values: ["crashed", "gpu", "gpu_memory", "killed", "memory", "unresponsive", "start_failed"],
  },
  gpu_state: {
    help: "whether workers have it; `left_out` after workers ended on it again and again, or while other programs of the machine have it",
    values: ["free", "held", "left_out"],
  },
  cell: { help: "name of the cell" },
  bound: { help: "limit that it was beyond", values: ["total", "address"] },
  decision: {
    help: "what became of an outward connection",
    values: ["allowed", "refused"],
  },
  operation: { help: "operation of the storage port" },
  result: { help: "whether it was carried out", values: ["ok", "unavailable", "error"] },
  percentile: { help: "percent of the samples that are not above it", values: ["50", "99", "100"] },
  metric: { help: "metric that would have had one series more" },
} as const satisfies { readonly [name: string]: LabelDeclaration };

type LabelName = keyof typeof LABELS;

export interface Declaration<Names extends readonly string[] = readonly string[]> {
  readonly name: string;
  /** The text for HELP and the document: one sentence without its full stop. */
  readonly help: string;
  readonly kind: "counter" | "gauge" | "histogram";
  /** The unit of its values; the name ends with it, apart from `_total`. */
  readonly unit: "seconds" | "bytes" | "none";
  /**
   * The owner. A deployment's metric has the additional labels `organization`,
   * `deployment` and `node`; an organization's has `organization` and `node`;
   * the node's, for operators, has only `node`.
   */
  readonly of: "deployment" | "organization" | "node";
  readonly labels: Names;
  /** Upper bounds of a histogram's buckets, ascending; +Inf is implied. */
  readonly buckets?: readonly number[];
}

const declare = <const Declared extends Declaration<readonly LabelName[]>>(
  declaration: Declared,
): Declared => declaration;

/** Buckets for calls: from a millisecond to a minute. */
const CALL_SECONDS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];

/** Buckets for tasks: from ten milliseconds to hours. */
const TASK_SECONDS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3_600, 14_400];

/** Buckets for operations of the database. */
const STORAGE_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5];

export const METRICS = {
  requests: declare({
    name: "tessera_requests_total",
    help: "Calls of endpoints that were answered",
    kind: "counter",
    unit: "none",
    of: "deployment",
    labels: ["endpoint", "protocol", "code"],
  }),
  requestDuration: declare({
    name: "tessera_request_duration_seconds",
    help: "Time from the arrival of a call to its answer, or to the end of a stream",
    kind: "histogram",
    unit: "seconds",
    of: "deployment",
    labels: ["endpoint", "protocol"],
    buckets: CALL_SECONDS,
  }),
  tasksSubmitted: declare({
    name: "tessera_tasks_submitted_total",
    help: "Tasks that were stored, without those that were there already",
    kind: "counter",
    unit: "none",
    of: "deployment",
    labels: ["endpoint"],
  }),
  tasksStarted: declare({
    name: "tessera_tasks_started_total",
    help: "Attempts that began to run",
    kind: "counter",
    unit: "none",
    of: "deployment",
    labels: ["endpoint"],
  }),
  tasksFinished: declare({
    name: "tessera_tasks_finished_total",
    help: "Attempts that ended, and tasks that ended without one",
    kind: "counter",
    unit: "none",
    of: "deployment",
    labels: ["endpoint", "outcome"],
  }),
  batchSize: declare({
    name: "tessera_batch_size",
    help: "Calls or tasks that went to a worker together, of endpoints with batches",
    kind: "histogram",
    unit: "none",
    of: "deployment",
    labels: ["endpoint"],
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512],
  }),
  batchWait: declare({
    name: "tessera_batch_wait_seconds",
    help: "Time from when the oldest of a batch came to the start of the batch",
    kind: "histogram",
    unit: "seconds",
    of: "deployment",
    labels: ["endpoint"],
    buckets: TASK_SECONDS,
  }),
  queueWait: declare({
    name: "tessera_task_queue_wait_seconds",
    help: "Time from when a task was due to the start of its attempt",
    kind: "histogram",
    unit: "seconds",
    of: "deployment",
    labels: ["endpoint"],
    buckets: TASK_SECONDS,
  }),
  runTime: declare({
    name: "tessera_task_run_seconds",
    help: "Time from the start of an attempt to its end",
    kind: "histogram",
    unit: "seconds",
    of: "deployment",
    labels: ["endpoint"],
    buckets: TASK_SECONDS,
  }),
  queueLength: declare({
    name: "tessera_queue_length",
    help: "Tasks that wait to run; every node shows the same queue, so take the largest",
    kind: "gauge",
    unit: "none",
    of: "deployment",
    labels: ["endpoint"],
  }),
  tasksRunning: declare({
    name: "tessera_tasks_running",
    help: "Tasks that run, on all nodes; every node shows the same number, so take the largest",
    kind: "gauge",
    unit: "none",
    of: "deployment",
    labels: ["endpoint"],
  }),
  oldestWaiting: declare({
    name: "tessera_queue_oldest_seconds",
    help: "How long the oldest task that is due has been waiting, 0 when none is",
    kind: "gauge",
    unit: "seconds",
    of: "deployment",
    labels: ["endpoint"],
  }),
  workers: declare({
    name: "tessera_workers",
    help: "Workers that are up on the node",
    kind: "gauge",
    unit: "none",
    of: "deployment",
    labels: [],
  }),
  workersStarting: declare({
    name: "tessera_workers_starting",
    help: "Workers that are starting on the node",
    kind: "gauge",
    unit: "none",
    of: "deployment",
    labels: [],
  }),
  workersDesired: declare({
    name: "tessera_workers_desired",
    help: "Workers that the load asks for on the node, those on other machines that join it included; their sum over the nodes is what the deployment needs",
    kind: "gauge",
    unit: "none",
    of: "deployment",
    labels: [],
  }),
  workerRestarts: declare({
    name: "tessera_worker_restarts_total",
    help: "Workers that were replaced because they had ended by themselves or had to be killed",
    kind: "counter",
    unit: "none",
    of: "deployment",
    labels: ["cause"],
  }),
  egressConnections: declare({
    name: "tessera_egress_connections_total",
    help: "Outward connections of the workers that the egress proxy opened or refused",
    kind: "counter",
    unit: "none",
    of: "deployment",
    labels: ["decision"],
  }),
  workerCpu: declare({
    name: "tessera_worker_cpu_seconds_total",
    help: "Processor time that the workers have used, those that are gone included",
    kind: "counter",
    unit: "seconds",
    of: "deployment",
    labels: [],
  }),
  workerMemory: declare({
    name: "tessera_worker_memory_bytes",
    help: "Resident memory of the workers that are up",
    kind: "gauge",
    unit: "bytes",
    of: "deployment",
    labels: [],
  }),
  metricsUnread: declare({
    name: "tessera_metrics_unread_total",
    help: "Times that what a server or a library in a worker exposes could not be read; the log of the service says why",
    kind: "counter",
    unit: "none",
    of: "deployment",
    labels: [],
  }),
  seriesDropped: declare({
    name: "tessera_series_dropped_total",
    help: "Events that were not counted because their metric has as many series as it may have",
    kind: "counter",
    unit: "none",
    of: "organization",
    labels: ["metric"],
  }),
  tokenVerifications: declare({
    name: "tessera_token_verifications_total",
    help: "Tokens that were looked at",
    kind: "counter",
    unit: "none",
    of: "node",
    labels: ["verification"],
  }),
  connectionsRefused: declare({
    name: "tessera_connections_refused_total",
    help: "Connections that were closed at once because too many were open",
    kind: "counter",
    unit: "none",
    of: "node",
    labels: ["bound"],
  }),
  storageOperations: declare({
    name: "tessera_storage_operation_seconds",
    help: "Time from a question to the database to its answer, waiting in line included",
    kind: "histogram",
    unit: "seconds",
    of: "node",
    labels: ["operation", "result"],
    buckets: STORAGE_SECONDS,
  }),
  nodeWorkers: declare({
    name: "tessera_node_workers",
    help: "Workers of all deployments that hold room on the node, from before their start to their end",
    kind: "gauge",
    unit: "none",
    of: "node",
    labels: [],
  }),
  nodeWorkersLimit: declare({
    name: "tessera_node_workers_limit",
    help: "Workers that may hold room on the node (`--max-workers`)",
    kind: "gauge",
    unit: "none",
    of: "node",
    labels: [],
  }),
  nodeWorkersMemory: declare({
    name: "tessera_node_workers_memory_bytes",
    help: "Memory that the workers on the node count for in its budget",
    kind: "gauge",
    unit: "bytes",
    of: "node",
    labels: [],
  }),
  nodeWorkersMemoryLimit: declare({
    name: "tessera_node_workers_memory_limit_bytes",
    help: "Memory that workers may use on the node (`--max-memory`)",
    kind: "gauge",
    unit: "bytes",
    of: "node",
    labels: [],
  }),
  nodeWaiting: declare({
    name: "tessera_node_waiting",
    help: "Deployments and roll-outs that wait for room on the node",
    kind: "gauge",
    unit: "none",
    of: "node",
    labels: [],
  }),
  nodeEvictions: declare({
    name: "tessera_node_evictions_total",
    help: "Idle workers that were ended because others needed their room",
    kind: "counter",
    unit: "none",
    of: "node",
    labels: [],
  }),
  nodeGpus: declare({
    name: "tessera_node_gpus",
    help: "GPUs of the node",
    kind: "gauge",
    unit: "none",
    of: "node",
    labels: ["gpu_state"],
  }),
  notifierUp: declare({
    name: "tessera_notifier_up",
    help: "Whether notifications of the database arrive; at 0, callers wait for polls",
    kind: "gauge",
    unit: "none",
    of: "node",
    labels: [],
  }),
  cellUp: declare({
    name: "tessera_cell_up",
    help: "Whether a cell answers the node; at 0, its tasks wait, and it takes no new ones",
    kind: "gauge",
    unit: "none",
    of: "node",
    labels: ["cell"],
  }),
  eventLoopDelay: declare({
    name: "tessera_event_loop_delay_seconds",
    help: "How late the event loop was in the last interval",
    kind: "gauge",
    unit: "seconds",
    of: "node",
    // Not `quantile`, which Prometheus keeps for summaries.
    labels: ["percentile"],
  }),
  cpu: declare({
    name: "process_cpu_seconds_total",
    help: "Processor time that the node has used, without its workers",
    kind: "counter",
    unit: "seconds",
    of: "node",
    labels: [],
  }),
  memory: declare({
    name: "process_resident_memory_bytes",
    help: "Resident memory of the node, without its workers",
    kind: "gauge",
    unit: "bytes",
    of: "node",
    labels: [],
  }),
  startTime: declare({
    name: "process_start_time_seconds",
    help: "When the node was started, in seconds since 1970",
    kind: "gauge",
    unit: "seconds",
    of: "node",
    labels: [],
  }),
} as const;

export type MetricKey = keyof typeof METRICS;
