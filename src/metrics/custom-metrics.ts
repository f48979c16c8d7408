/**
 * The custom metrics of one deployment, which its service declares and counts
 * itself.
 *
 * A metric lives as long as its declaration stays the same. When a revision
 * changes it (kind, labels, buckets, aggregator) or drops it, its series end at
 * once and the new metric starts at zero: a series with other labels, or a
 * counter that became a gauge, must not continue the old one. Workers of the
 * previous revision go on counting in unchanged metrics.
 *
 * Counters and histograms are sums over all past and present workers, so they
 * never decrease when a worker ends. A gauge is aggregated over the workers
 * that are up and have set it. A label per worker would create new series for
 * ever, and nobody could tell which of them have ended.
 */
import {
  type CustomChange,
  type CustomDeclaration,
  CustomMetric,
  type CustomMetricsOptions,
} from "./custom-metric.ts";
import { type ExposedChanges, ExposedMetrics, sampleNames } from "./exposed-metrics.ts";
import type { SeriesBudget } from "./metric.ts";

interface Options extends CustomMetricsOptions {
  /** Of all that programs of the deployment expose. */
  readonly exposedBudget: SeriesBudget;
  /** What programs of a worker expose could not be read. */
  readonly onUnread: (times: number) => void;
}

export class CustomMetrics {
  readonly #options: Options;
  readonly #metrics = new Map<string, CustomMetric>();
  /** The names of all their samples. */
  #names: ReadonlySet<string> = new Set();
  readonly #exposed: ExposedMetrics;
  #ended = false;

  constructor(options: Options) {
    this.#options = options;
    this.#exposed = new ExposedMetrics({
      owner: options.owner,
      budget: options.exposedBudget,
      isDeclared: (name) => this.#names.has(name),
      // Their names are nobody's promise, so they are no values of a label.
      onDropped: (events) => options.onDropped("other", events),
    });
  }

  get all(): Iterable<CustomMetric> {
    return this.#metrics.values();
  }

  /** What programs of its workers expose. */
  get exposed(): ExposedMetrics["all"] {
    return this.#exposed.all;
  }

  /** Replaces the declared metrics. */
  declare(declarations: readonly CustomDeclaration[]): void {
    if (this.#ended) {
      return;
    }
    const before = new Map(this.#metrics);
    this.#metrics.clear();
    for (const declaration of declarations) {
      const { name } = declaration;
      const same = before.get(name);
      if (same?.isAs(declaration)) {
        before.delete(name);
        this.#metrics.set(name, same);
      } else {
        this.#metrics.set(name, new CustomMetric(declaration, this.#options));
      }
    }
    for (const gone of before.values()) {
      gone.end();
    }
    this.#names = new Set(declarations.flatMap(({ name, kind }) => sampleNames(name, kind)));
    this.#exposed.serve();
  }

  /** Applies a worker's change; ignored when the declaration has changed since. */
  count(workerId: string, declaration: CustomDeclaration, change: CustomChange): void {
    const metric = this.#metrics.get(declaration.name);
    if (metric?.isAs(declaration)) {
      metric.count(workerId, change);
    }
  }

  /** Applies what has changed in what programs of a worker expose. */
  countExposed(workerId: string, exposed: ExposedChanges): void {
    if (!this.#ended) {
      this.#exposed.take(workerId, exposed);
    }
  }

  /** What programs of a worker expose could not be read, this often. */
  unread(times: number): void {
    this.#options.onUnread(times);
  }

  /** A worker dropped this many events. */
  dropped(metric: string, events: number): void {
    this.#options.onDropped(metric, events);
  }

  /** A worker has ended: removes its values from gauges. */
  workerEnded(workerId: string): void {
    for (const metric of this.#metrics.values()) {
      metric.workerEnded(workerId);
    }
    this.#exposed.workerEnded(workerId);
  }

  /** Ends all series. */
  end(): void {
    this.declare([]);
    this.#exposed.end();
    this.#ended = true;
  }
}
