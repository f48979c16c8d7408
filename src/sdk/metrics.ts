/**
 * Custom metrics of a service. They are declared once, in the options of
 * `service`, and recorded through `ctx.metrics`, whose types follow from the
 * declarations.
 */
import { refuseUnknown } from "./unknown.ts";

/** A number that only goes up, such as items done or bytes read. */
export interface CounterDeclaration<Label extends string = string> {
  readonly kind: "counter";
  readonly help: string;
  readonly labels: readonly Label[];
}

/** A number that goes up and down, such as items loaded, running or left. */
export interface GaugeDeclaration<Label extends string = string> {
  readonly kind: "gauge";
  readonly help: string;
  readonly labels: readonly Label[];
  readonly aggregator: Aggregator;
}

/** A distribution of values, such as durations, sizes or scores. */
export interface HistogramDeclaration<Label extends string = string> {
  readonly kind: "histogram";
  readonly help: string;
  readonly labels: readonly Label[];
  readonly buckets: readonly number[];
}

export type MetricDeclaration = CounterDeclaration | GaugeDeclaration | HistogramDeclaration;

/** Metrics by name. A name has letters, digits and `_`, at most 100, and no digit first. */
export interface MetricDeclarations {
  readonly [name: string]: MetricDeclaration;
}

/** The declarations of a service without custom metrics. */
export type NoMetrics = Record<never, never>;

/** How the values of a node's workers are combined into one. */
export type Aggregator = "sum" | "min" | "max" | "average";

export interface MetricOptions<Label extends string = string> {
  /** What the metric means, in one sentence of at most 1,000 characters. */
  readonly help: string;
  /**
   * Names of labels, at most 5. Default: none. Use labels with few values, since each
   * combination of values is a series (at most 2,000 per metric and worker): no ids
   * and nothing that callers write. Counters and histograms have the label
   * `endpoint` already.
   */
  readonly labels?: readonly Label[];
}

export interface GaugeOptions<Label extends string = string> extends MetricOptions<Label> {
  /** How the values of a node's workers are combined into one. Default: `sum`. */
  readonly aggregator?: Aggregator;
}

export interface HistogramOptions<Label extends string = string> extends MetricOptions<Label> {
  /**
   * Upper bounds in rising order, at most 50; +Inf is added. Default: 0.005 to 10, as
   * in all Prometheus clients, which suits the seconds of short calls.
   */
  readonly buckets?: readonly number[];
}

/** The default of Prometheus' own clients. */
const DEFAULT_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Declares a number that only goes up. By convention its name ends with `_total`. */
export function counter<const Label extends string = never>({
  help,
  labels = [],
  ...others
}: MetricOptions<Label>): CounterDeclaration<Label> {
  refuseUnknown(others, { help: true, labels: true }, "counter()");
  return { kind: "counter", help, labels };
}

/**
 * Declares a number that goes up and down. It belongs to the worker, not to the
 * endpoint that sets it, and disappears when the worker ends.
 */
export function gauge<const Label extends string = never>({
  help,
  labels = [],
  aggregator = "sum",
  ...others
}: GaugeOptions<Label>): GaugeDeclaration<Label> {
  refuseUnknown(others, { help: true, labels: true, aggregator: true }, "gauge()");
  return { kind: "gauge", help, labels, aggregator };
}

/** Declares a distribution. By convention its name ends with the unit, such as `_seconds`. */
export function histogram<const Label extends string = never>({
  help,
  labels = [],
  buckets = DEFAULT_BUCKETS,
  ...others
}: HistogramOptions<Label>): HistogramDeclaration<Label> {
  refuseUnknown(others, { help: true, labels: true, buckets: true }, "histogram()");
  return { kind: "histogram", help, labels, buckets };
}

/** A value for each label. Values are cut at 200 characters. */
export type LabelValues<Label extends string> = { readonly [Name in Label]: string | number };

/** The parameters: an amount, then the labels if any are declared. */
type Take<Label extends string, Amount extends unknown[]> = [Label] extends [never]
  ? (...amount: Amount) => void
  : (amount: number, labels: LabelValues<Label>) => void;

/*
 * None of these methods throws or waits. A value that cannot be counted (a negative
 * amount for a counter, or no finite number) is ignored, and the log of the worker
 * says so once per metric.
 */

export interface Counter<Label extends string = never> {
  /** Adds an amount, which must not be negative. Default: 1. */
  readonly add: Take<Label, [amount?: number]>;
}

export interface Gauge<Label extends string = never> {
  /** Sets the gauge to a value. */
  readonly set: Take<Label, [value: number]>;
  /** Adds to the current value, initially 0. A negative amount lowers it. */
  readonly add: Take<Label, [amount: number]>;
}

export interface Histogram<Label extends string = never> {
  /** Records a value. */
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

/** The type of `ctx.metrics` in a service with these declarations. */
export type MetricsOf<Declared extends MetricDeclarations> = {
  readonly [Name in keyof Declared]: MetricOf<Declared[Name]>;
};
