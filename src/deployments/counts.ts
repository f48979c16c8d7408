/**
 * Aggregates the custom metrics of a deployment: checks each message against the
 * manifest of its worker, and adds it to the metrics of the deployment.
 *
 * Only the serving revision is counted. Workers of the next revision are ready
 * before it serves and may have counted in `setup`; their messages are buffered
 * until it serves, and dropped with them if it never does.
 */
import type { CustomMetrics } from "../metrics/custom-metrics.ts";
import type { CountsReceiver } from "../pool/worker-options.ts";
import type { MetricManifest, ServiceManifest } from "../protocol/manifest.ts";
import type { MetricChange, WorkerMessage } from "../protocol/messages.ts";
import { MAX_LABEL_VALUE_CHARACTERS } from "../sdk/metric-rules.ts";

type MetricsMessage = Extract<WorkerMessage, { readonly type: "metrics" }>;

/**
 * Numbers and labels held for a worker that does not serve yet. The largest message of one has
 * 26,000.
 */
const MAX_HELD_COUNT_VALUES = 30_000;

/** What the changes of all workers are counted into. */
type CountedMetrics = Pick<
  CustomMetrics,
  "declare" | "count" | "countExposed" | "dropped" | "unread" | "workerEnded"
>;

/** The serving revision: its metrics, and its declarations as a text to compare. */
interface Serving {
  readonly metrics: CountedMetrics;
  readonly declared: string;
}

export class DeploymentCounts {
  #serving: Serving | undefined;
  readonly #workers = new Set<WorkerCounts>();

  /** A worker with this manifest is ready. Returns the receiver of its messages. */
  worker(workerId: string, manifest: ServiceManifest): CountsReceiver {
    const worker = new WorkerCounts(workerId, manifest, () => this.#workers.delete(worker));
    this.#workers.add(worker);
    worker.serve(this.#serving);
    return worker;
  }

  /** A revision with this manifest serves; its workers count into `metrics`. */
  serve(metrics: CountedMetrics, { metrics: declared = [] }: ServiceManifest): void {
    metrics.declare(declared);
    this.#serving = { metrics, declared: textOf(declared) };
    for (const worker of this.#workers) {
      worker.serve(this.#serving);
    }
  }
}

/** The metrics of one worker. */
class WorkerCounts implements CountsReceiver {
  readonly #workerId: string;
  readonly #declared: ReadonlyMap<string, MetricManifest>;
  readonly #text: string;
  readonly #endpoints: ReadonlySet<string>;
  readonly #onEnd: () => void;
  #metrics: CountedMetrics | undefined;
  #kept: MetricsMessage[] = [];
  #keptValues = 0;
  #ended = false;

  constructor(workerId: string, { metrics = [], endpoints }: ServiceManifest, onEnd: () => void) {
    this.#workerId = workerId;
    this.#declared = new Map(metrics.map((metric) => [metric.name, metric]));
    this.#text = textOf(metrics);
    this.#endpoints = new Set(endpoints.map(({ name }) => name));
    this.#onEnd = onEnd;
  }

  /** Begins to count when a revision with the same declarations serves. Never stops again. */
  serve(serving: Serving | undefined): void {
    if (serving === undefined || serving.declared !== this.#text) {
      return;
    }
    this.#metrics = serving.metrics;
    const kept = this.#kept;
    this.#kept = [];
    for (const message of kept) {
      this.#count(message, serving.metrics);
    }
  }

  take(message: MetricsMessage): string | undefined {
    const { changes, dropped } = message;
    for (const change of changes) {
      const fault = this.#faultOf(change);
      if (fault !== undefined) {
        return `it counted ${JSON.stringify(change.metric.slice(0, 100))} ${fault}`;
      }
    }
    if (dropped.some(({ metric }) => !this.#declared.has(metric))) {
      return "it left out events of a metric that it does not declare";
    }
    if (this.#metrics) {
      this.#count(message, this.#metrics);
    } else {
      this.#keep(message);
    }
    return undefined;
  }

  end(): void {
    this.#ended = true;
    this.#kept = [];
    this.#metrics?.workerEnded(this.#workerId);
    this.#onEnd();
  }

  #keep(message: MetricsMessage): void {
    const values = valuesIn(message);
    if (!this.#ended && this.#keptValues + values <= MAX_HELD_COUNT_VALUES) {
      this.#keptValues += values;
      this.#kept.push(message);
    }
  }

  #count(message: MetricsMessage, metrics: CountedMetrics): void {
    const { changes, dropped, exposed = [], unread = 0 } = message;
    for (const change of changes) {
      const declaration = this.#declared.get(change.metric) as MetricManifest;
      // Last increments of an ended worker still count, but its gauges are gone.
      if (!this.#ended || declaration.kind !== "gauge") {
        metrics.count(this.#workerId, declaration, change);
      }
    }
    for (const { metric, events } of dropped) {
      metrics.dropped(metric, events);
    }
    for (const metric of exposed) {
      if (!this.#ended || metric.kind !== "gauge") {
        metrics.countExposed(this.#workerId, metric);
      }
    }
    if (unread > 0) {
      metrics.unread(unread);
    }
  }

  #faultOf({ metric, endpoint, labels, value, counts }: MetricChange): string | undefined {
    const declared = this.#declared.get(metric);
    if (declared === undefined) {
      return "which it does not declare";
    }
    const { kind, buckets = [] } = declared;
    if (endpoint !== undefined && (kind === "gauge" || !this.#endpoints.has(endpoint))) {
      return "for an endpoint that it cannot have";
    }
    if (labels.length !== declared.labels.length || !labels.every(isLabelValue)) {
      return "with labels that it does not declare";
    }
    if (kind === "counter" && value < 0) {
      return "down";
    }
    const expected = kind === "histogram" ? buckets.length + 1 : undefined;
    return counts?.length === expected ? undefined : "with buckets that it does not declare";
  }
}

/** The size of a message: its numbers and labels. The pool has already validated its shape. */
function valuesIn({ changes, dropped, exposed = [] }: MetricsMessage): number {
  const all = [...changes, ...exposed.flatMap((metric) => metric.changes)];
  return all.reduce(
    (sum, { labels, counts = [] }) => sum + 1 + labels.length + counts.length,
    1 + dropped.length,
  );
}

/** A text that is equal for equal declarations, whatever order a database gives their members. */
function textOf(metrics: readonly MetricManifest[]): string {
  return JSON.stringify(
    metrics.map(({ name, kind, help, labels, buckets, aggregator }) => [
      ...[name, kind, help, labels, buckets, aggregator],
    ]),
  );
}

function isLabelValue(value: string): boolean {
  return value.length <= MAX_LABEL_VALUE_CHARACTERS && value.isWellFormed();
}
