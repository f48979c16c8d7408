/**
 * What a service counts itself. Metrics are declared once, at the service, and
 * counted through `ctx.metrics`; their types follow from the declarations.
 */

/** A number that only goes up: things done, bytes read. */
export interface CounterDeclaration<Label extends string = string> {
  readonly kind: "counter";
  readonly help: string;
  readonly labels: readonly Label[];
}

/** A number that goes up and down: things loaded, under way, left. */
export interface GaugeDeclaration<Label extends string = string> {
  readonly kind: "gauge";
  readonly help: string;
  readonly labels: readonly Label[];
  readonly aggregator: Aggregator;
}

/** How values are spread: durations, sizes, scores. */
export interface HistogramDeclaration<Label extends string = string> {
  readonly kind: "histogram";
  readonly help: string;
  readonly labels: readonly Label[];
  readonly buckets: readonly number[];
}

export type MetricDeclaration = CounterDeclaration | GaugeDeclaration | HistogramDeclaration;

/** Metrics by name: letters, digits and `_`, not beginning with a digit. */
export interface MetricDeclarations {
  readonly [name: string]: MetricDeclaration;
}

/** Of a service that counts nothing itself. */
export type NoMetrics = Record<never, never>;

/** How the values of several workers become one. */
export type Aggregator = "sum" | "min" | "max" | "average";

export interface MetricOptions<Label extends string = string> {
  /** What it says: one sentence. */
  readonly help: string;
  /**
   * Names of labels, at most 5. Default: none. Keep their values few, since each set of
   * them is a series: never ids, or anything that a caller writes. The
   * endpoint is a label already, of counters and histograms.
   */
  readonly labels?: readonly Label[];
}

export interface GaugeOptions<Label extends string = string> extends MetricOptions<Label> {
  /** How the values of a node's workers become one. Default: their sum. */
  readonly aggregator?: Aggregator;
}

export interface HistogramOptions<Label extends string = string> extends MetricOptions<Label> {
  /**
   * Upper bounds, rising, at most 50; +Inf comes by itself. Default: 0.005 to 10,
   * as all clients of Prometheus have it, for seconds of short calls.
   */
  readonly buckets?: readonly number[];
}

/** Of Prometheus' own clients. */
const DEFAULT_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Declares a number that only goes up. By convention its name ends with `_total`. */
export function counter<const Label extends string = never>({
  help,
  labels = [],
}: MetricOptions<Label>): CounterDeclaration<Label> {
  return { kind: "counter", help, labels };
}

/**
 * Declares a number that goes up and down. It says something of the worker,
 * whichever endpoint sets it, and is gone when the worker ends.
 */
export function gauge<const Label extends string = never>({
  help,
  labels = [],
  aggregator = "sum",
}: GaugeOptions<Label>): GaugeDeclaration<Label> {
  return { kind: "gauge", help, labels, aggregator };
}

/** Declares a distribution. By convention its name ends with the unit, such as `_seconds`. */
export function histogram<const Label extends string = never>({
  help,
  labels = [],
  buckets = DEFAULT_BUCKETS,
}: HistogramOptions<Label>): HistogramDeclaration<Label> {
  return { kind: "histogram", help, labels, buckets };
}

/** A value for each label; longer ones than 200 characters are cut. */
export type LabelValues<Label extends string> = { readonly [Name in Label]: string | number };

/** Takes an amount, and the labels where there are any. */
type Take<Label extends string, Amount extends unknown[]> = [Label] extends [never]
  ? (...amount: Amount) => void
  : (amount: number, labels: LabelValues<Label>) => void;

/*
 * None of these throws, and none waits. What cannot be counted (a counter that
 * would go down, a value that is no finite number) is left out, and the log of
 * the worker says so once.
 */

export interface Counter<Label extends string = never> {
  /** Adds an amount that is not negative; 1 where nothing is said. */
  readonly add: Take<Label, [amount?: number]>;
}

export interface Gauge<Label extends string = never> {
  readonly set: Take<Label, [value: number]>;
  /** Adds to what the gauge was set to, or to 0; a negative amount lowers it. */
  readonly add: Take<Label, [amount: number]>;
}

export interface Histogram<Label extends string = never> {
  readonly observe: Take<Label, [value: number]>;
}

type MetricOf<Declared> =
  Declared extends CounterDeclaration<infer Label>
    ? Counter<Label>
    : Declared extends GaugeDeclaration<infer Label>
      ? Gauge<Label>
      : Declared extends HistogramDeclaration<infer Label>
        ? Histogram<Label>
        : never;

/** What `ctx.metrics` is, for a service with these declarations. */
export type MetricsOf<Declared extends MetricDeclarations> = {
  readonly [Name in keyof Declared]: MetricOf<Declared[Name]>;
};
