/**
 * Validation rules for the metrics of a service: names, labels, buckets. The SDK
 * checks them where a service is defined. The node checks them again in the
 * manifest that a worker sends, because they become text in Prometheus' format.
 * Source: the data model and the metric and label naming pages of Prometheus.
 */

import type { MetricManifest } from "../protocol/manifest.ts";
import { ServiceDefinitionError } from "./errors.ts";

/** Metrics that a service may declare. */
export const MAX_METRICS = 50;
/** Labels of one metric: each set of values is a series. */
export const MAX_LABELS = 5;
/** Buckets of one histogram. */
export const MAX_BUCKETS = 50;
/** Name of a metric or label. */
const MAX_METRIC_NAME_CHARACTERS = 100;
/** Help text of a metric. */
const MAX_METRIC_HELP_CHARACTERS = 1_000;

/** Value of a label, in UTF-16 units. */
export const MAX_LABEL_VALUE_CHARACTERS = 200;

const NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

/** Metric names of the platform, and those that Prometheus adds to each target. */
const RESERVED_METRICS = /^(?:tessera_|process_|scrape_|up$|ALERTS)/;

/** Labels that the platform or Prometheus sets or interprets. */
const RESERVED_LABELS = new Set([
  ...["organization", "deployment", "endpoint", "node"],
  ...["instance", "job", "le", "quantile"],
]);

const KINDS: ReadonlySet<unknown> = new Set(["counter", "gauge", "histogram"]);
const AGGREGATORS: ReadonlySet<unknown> = new Set(["sum", "min", "max", "average"]);

/** The declarations in manifest form. Throws a `ServiceDefinitionError` for an invalid one. */
export function checkMetrics(declared: unknown, place: string): readonly MetricManifest[] {
  if (declared === undefined) {
    return [];
  }
  if (typeof declared !== "object" || declared === null || Array.isArray(declared)) {
    const message = "metrics must be an object of counter(), gauge() and histogram()";
    throw new ServiceDefinitionError(place, message);
  }
  const metrics = Object.entries(declared).map(([name, metric]) => ({ ...metric, name }));
  const fault = metricsFault(metrics);
  if (fault !== undefined) {
    throw new ServiceDefinitionError(place, fault);
  }
  // Copies known members only: others in a hand-made object may not be serialisable.
  return (metrics as MetricManifest[]).map(({ name, kind, help, labels, buckets, aggregator }) => ({
    name,
    kind,
    help,
    labels: [...labels],
    ...(buckets && { buckets: [...buckets] }),
    ...(aggregator && { aggregator }),
  }));
}

/** What is wrong with the metrics of a service; undefined when nothing is. */
export function metricsFault(metrics: readonly unknown[]): string | undefined {
  if (metrics.length > MAX_METRICS) {
    return `${metrics.length} metrics are declared, and at most ${MAX_METRICS} may be; make one with labels of those that are alike`;
  }
  const names = new Map<string, string>();
  for (const metric of metrics) {
    const { name } = (metric ?? {}) as { readonly name?: unknown };
    const fault = metricFault(metric) ?? takeNames(metric as MetricManifest, names);
    if (fault !== undefined) {
      return `metric ${name === undefined ? "without a name" : shown(name)} ${fault}`;
    }
  }
  return undefined;
}

function metricFault(metric: unknown): string | undefined {
  if (typeof metric !== "object" || metric === null || !("kind" in metric)) {
    return "must be made by counter(), gauge() or histogram()";
  }
  const { name, kind, help, labels, buckets, aggregator } = metric as {
    readonly [Key in keyof MetricManifest]: unknown;
  };
  if (!KINDS.has(kind)) {
    return "must be made by counter(), gauge() or histogram()";
  }
  if (!isName(name)) {
    return `must have a name of letters, digits and _, not beginning with a digit, at most ${MAX_METRIC_NAME_CHARACTERS}`;
  }
  if (RESERVED_METRICS.test(name)) {
    return "has a name of the platform or of Prometheus (tessera_…, process_…, scrape_…, up, ALERTS…); choose another";
  }
  if (typeof help !== "string" || help.trim() === "" || help.length > MAX_METRIC_HELP_CHARACTERS) {
    return `needs help, a text of at most ${MAX_METRIC_HELP_CHARACTERS} characters that says what it counts`;
  }
  const isHistogram = kind === "histogram";
  return (
    labelsFault(labels) ??
    (isHistogram ? bucketsFault(buckets) : faultUnless(buckets === undefined, "has no buckets")) ??
    faultUnless(
      kind === "gauge" ? AGGREGATORS.has(aggregator) : aggregator === undefined,
      'has an aggregator that is not one of "sum", "min", "max" and "average", or is no gauge',
    )
  );
}

function labelsFault(labels: unknown): string | undefined {
  if (!Array.isArray(labels)) {
    return "has labels that are no list of names";
  }
  if (labels.length > MAX_LABELS) {
    return `has ${labels.length} labels, and at most ${MAX_LABELS} are allowed: each set of values is a series`;
  }
  for (const [index, label] of labels.entries()) {
    if (!isName(label) || label.startsWith("__")) {
      return `has a label ${shown(label)}, which is no name: letters, digits and _, not beginning with a digit or __`;
    }
    if (RESERVED_LABELS.has(label)) {
      return `has a label ${label}, which the platform or Prometheus sets itself; choose another`;
    }
    if (labels.indexOf(label) !== index) {
      return `has the label ${label} twice`;
    }
  }
  return undefined;
}

function bucketsFault(buckets: unknown): string | undefined {
  if (!Array.isArray(buckets) || buckets.length === 0 || buckets.length > MAX_BUCKETS) {
    return `needs buckets, from 1 to ${MAX_BUCKETS} upper bounds`;
  }
  for (const [index, bound] of buckets.entries()) {
    if (!Number.isFinite(bound) || (index > 0 && bound <= buckets[index - 1])) {
      return `has buckets that are not finite and rising, at ${shown(bound)}; +Inf comes by itself`;
    }
  }
  return undefined;
}

/** Reserves the names of a metric's series in Prometheus; returns the fault when one is taken. */
function takeNames({ name, kind }: MetricManifest, names: Map<string, string>): string | undefined {
  const parts = kind === "histogram" ? ["", "_bucket", "_sum", "_count"] : [""];
  for (const part of parts) {
    const taken = names.get(`${name}${part}`);
    if (taken !== undefined) {
      return `and metric "${taken}" would both have series called ${name}${part}; rename one`;
    }
    names.set(`${name}${part}`, name);
  }
  return undefined;
}

function isName(name: unknown): name is string {
  return typeof name === "string" && name.length <= MAX_METRIC_NAME_CHARACTERS && NAME.test(name);
}

/** A value for a message. The declared value may be anything, even one without a text. */
function shown(value: unknown): string {
  if (typeof value === "string") {
    return JSON.stringify(value.slice(0, MAX_METRIC_NAME_CHARACTERS));
  }
  return typeof value === "number" ? String(value) : `of type ${typeof value}`;
}

function faultUnless(isRight: boolean, fault: string): string | undefined {
  return isRight ? undefined : fault;
}
