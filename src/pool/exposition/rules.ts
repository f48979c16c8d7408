/**
 * What programs in a worker may expose: names, labels and values that can stand beside the
 * platform's own, whatever the program says.
 */
import type { ExposedMetric } from "../../protocol/messages.ts";

/** Name of a metric, or of one of its labels, that a program exposes. */
const MAX_EXPOSED_NAME_CHARACTERS = 200;
/** Help text of a metric that a program exposes; a longer one is cut. */
export const MAX_EXPOSED_HELP_CHARACTERS = 1_000;
/** Value of a label that a program exposes. */
const MAX_EXPOSED_VALUE_CHARACTERS = 500;
/** Labels of a series that a program exposes. */
export const MAX_EXPOSED_LABELS = 20;
/** Buckets of a histogram that a program exposes, without +Inf. */
export const MAX_EXPOSED_BUCKETS = 100;

const METRIC = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const LABEL = /^(?!__)[a-zA-Z_][a-zA-Z0-9_]*$/;
/** Names of the platform, and those that Prometheus adds to each target. */
const RESERVED = /^(?:tessera_|process_|scrape_|up$|ALERTS)/;
/** Labels that say which deployment it is of, and those that a Prometheus sets. */
const OF_TARGET: ReadonlySet<string> = new Set([
  ...["organization", "deployment", "node", "instance", "job"],
]);
/** Labels of the buckets of histograms, and of the quantiles of summaries. */
const OF_PARTS: ReadonlySet<string> = new Set(["le", "quantile"]);
const AGGREGATORS: ReadonlySet<unknown> = new Set(["sum", "min", "max", "average"]);

/** Whether a metric may have this name. */
export function isExposedName(name: string): boolean {
  return name.length <= MAX_EXPOSED_NAME_CHARACTERS && METRIC.test(name) && !RESERVED.test(name);
}

/** Whether a series may have a label of this name. */
export function isExposedLabel(name: string): boolean {
  return (
    name.length <= MAX_EXPOSED_NAME_CHARACTERS &&
    LABEL.test(name) &&
    !OF_TARGET.has(name) &&
    !OF_PARTS.has(name)
  );
}

/** Whether a label may have this value. */
export function isExposedValue(value: string): boolean {
  return value.length <= MAX_EXPOSED_VALUE_CHARACTERS && value.isWellFormed();
}

/**
 * The name under which a label is shown; undefined where it cannot be. One that says whose the
 * series is gets `exported_` before it, as in a Prometheus that scrapes it.
 */
export function labelNameFor(name: string): string | undefined {
  const own = OF_TARGET.has(name) ? `exported_${name}` : name;
  return isExposedLabel(own) ? own : undefined;
}

export function isAggregator(word: unknown): word is NonNullable<ExposedMetric["aggregator"]> {
  return AGGREGATORS.has(word);
}

/**
 * How the values of a gauge of several workers become one, where nobody says: they add up, but for
 * those whose names say that a sum means nothing.
 */
export function aggregatorOf(name: string): NonNullable<ExposedMetric["aggregator"]> {
  if (/_(?:ratio|percent|percentage|perc|celsius)$/.test(name)) {
    return "average";
  }
  return /_(?:info|timestamp|timestamp_seconds)$/.test(name) ? "max" : "sum";
}
