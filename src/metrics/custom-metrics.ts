/**
 * What the service of one deployment counts itself, under names of its own.
 *
 * A metric lives as long as it is declared in the same way. When a revision
 * declares it otherwise (kind, labels, buckets, aggregator) or no more, its
 * series end and are left out at once, and the new metric begins at zero: a
 * series with other labels, or a counter that became a gauge, is another thing
 * and must not go on as the old one. Workers that are behind count on in what
 * has not changed.
 *
 * Counters and histograms are sums over all workers there were, so a worker's
 * end takes nothing from them. A gauge is put together from the workers that
 * have set it and are up: workers come and go, and a label for them would make
 * new series forever, of which nobody could say which are gone.
 */
import {
  type CustomChange,
  type CustomDeclaration,
  CustomMetric,
  type CustomMetricsOptions,
} from "./custom-metric.ts";

export class CustomMetrics {
  readonly #options: CustomMetricsOptions;
  readonly #metrics = new Map<string, CustomMetric>();
  #ended = false;

  constructor(options: CustomMetricsOptions) {
    this.#options = options;
  }

  get all(): Iterable<CustomMetric> {
    return this.#metrics.values();
  }

  /** From now on it counts these. */
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
  }

  /** Counts what a worker has sent; nothing when the metric is declared otherwise by now. */
  count(workerId: string, declaration: CustomDeclaration, change: CustomChange): void {
    const metric = this.#metrics.get(declaration.name);
    if (metric?.isAs(declaration)) {
      metric.count(workerId, change);
    }
  }

  /** A worker has left out so many events. */
  dropped(metric: string, events: number): void {
    this.#options.onDropped(metric, events);
  }

  /** A worker has ended: it has no part in gauges any more. */
  workerEnded(workerId: string): void {
    for (const metric of this.#metrics.values()) {
      metric.workerEnded(workerId);
    }
  }

  /** All series end. */
  end(): void {
    this.declare([]);
    this.#ended = true;
  }
}
