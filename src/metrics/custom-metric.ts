/** One custom metric of a service. */
import {
  type AnySeries,
  GaugeSeries,
  type Group,
  HistogramSeries,
  Metric,
  type Owned,
  type Owner,
  type SeriesBudget,
} from "./metric.ts";

/** A metric as the service declares it. The caller has validated it. */
export interface CustomDeclaration {
  readonly name: string;
  readonly kind: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly labels: readonly string[];
  readonly buckets?: readonly number[];
  readonly aggregator?: "sum" | "min" | "max" | "average";
}

/** A change of one series. The caller has validated it against its declaration. */
export interface CustomChange {
  readonly endpoint?: string;
  readonly labels: readonly string[];
  readonly value: number;
  readonly counts?: readonly number[];
}

export interface CustomMetricsOptions {
  readonly owner: Owner;
  readonly maxSeries: number;
  readonly budget: SeriesBudget;
  /** Called for events that were not counted because there are too many series. */
  readonly onDropped: (metric: string, events: number) => void;
}

export class CustomMetric {
  readonly declaration: CustomDeclaration;
  readonly #metric: Metric;
  readonly #owned: Owned;
  readonly #gauges: GaugeValues;

  constructor(
    declaration: CustomDeclaration,
    { owner, maxSeries, budget, onDropped }: CustomMetricsOptions,
  ) {
    this.declaration = declaration;
    const { kind, labels } = declaration;
    this.#metric = new Metric(
      {
        ...declaration,
        unit: "none",
        of: "deployment",
        labels: kind === "gauge" ? labels : ["endpoint", ...labels],
      },
      // Its labels are the service's own, even when they are named like the
      // platform's.
      { maxSeries, budget, listed: {}, onDropped: () => onDropped(declaration.name, 1) },
    );
    this.#owned = this.#metric.of(owner);
    this.#gauges = new GaugeValues(declaration.aggregator);
  }

  get groups(): ReadonlyMap<string | undefined, Group> {
    return this.#metric.groups;
  }

  /** All of its series. */
  get series(): readonly AnySeries[] {
    return this.#owned.series;
  }

  /** Whether the declarations are equal except for the help. */
  isAs(other: CustomDeclaration): boolean {
    return other === this.declaration || shapeOf(other) === shapeOf(this.declaration);
  }

  count(workerId: string, { endpoint = "", labels, value, counts = [] }: CustomChange): void {
    const isGauge = this.declaration.kind === "gauge";
    const series = this.#owned.with(...(isGauge ? labels : [endpoint, ...labels]));
    if (series instanceof GaugeSeries) {
      this.#gauges.set(series, workerId, value);
    } else if (series instanceof HistogramSeries) {
      series.merge(counts, value);
    } else {
      series?.add(value);
    }
  }

  workerEnded(workerId: string): void {
    this.#gauges.workerEnded(workerId);
  }

  end(): void {
    this.#owned.end();
    this.#gauges.clear();
  }
}

/** What workers have set gauges to, and how their values become one. */
export class GaugeValues {
  readonly #aggregator: NonNullable<CustomDeclaration["aggregator"]>;
  readonly #values = new Map<GaugeSeries, Map<string, number>>();

  constructor(aggregator: CustomDeclaration["aggregator"] = "sum") {
    this.#aggregator = aggregator;
  }

  /** Undefined: the worker does not set it any more. */
  set(gauge: GaugeSeries, workerId: string, value: number | undefined): void {
    const values = this.#values.get(gauge) ?? new Map<string, number>();
    this.#values.set(gauge, values);
    if (value === undefined) {
      values.delete(workerId);
    } else {
      values.set(workerId, value);
    }
    this.#aggregate(gauge, values);
  }

  workerEnded(workerId: string): void {
    for (const [gauge, values] of this.#values) {
      if (values.delete(workerId)) {
        this.#aggregate(gauge, values);
      }
    }
  }

  clear(): void {
    this.#values.clear();
  }

  #aggregate(gauge: GaugeSeries, byWorker: ReadonlyMap<string, number>): void {
    const values = [...byWorker.values()];
    if (values.length === 0) {
      gauge.unset();
      this.#values.delete(gauge);
    } else {
      gauge.set(AGGREGATE[this.#aggregator](values));
    }
  }
}

const sum = (values: readonly number[]): number => values.reduce((all, each) => all + each, 0);

const AGGREGATE = {
  sum,
  min: (values: readonly number[]): number => Math.min(...values),
  max: (values: readonly number[]): number => Math.max(...values),
  average: (values: readonly number[]): number => sum(values) / values.length,
};

const SHAPES = new WeakMap<CustomDeclaration, string>();

function shapeOf(declaration: CustomDeclaration): string {
  const { kind, labels, buckets, aggregator } = declaration;
  const shape = SHAPES.get(declaration) ?? JSON.stringify([kind, labels, buckets, aggregator]);
  SHAPES.set(declaration, shape);
  return shape;
}
