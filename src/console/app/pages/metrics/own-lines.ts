/** The charts of what a service counts itself: which lines each has, from all series that were answered. */
import type {
  MetricSeriesJson,
  QueryMetricsResponseJson,
  ServiceMetricJson,
} from "../../../../../gen/tessera/v1/metrics_pb.js";
import { isolated } from "../../ui/isolated.ts";
import {
  type ChartNumber,
  type Line,
  latest,
  numbersOf,
  percentileNumbers,
  totalOf,
  wholeOf,
  wholeText,
} from "../../ui/line.ts";
import { type Format, formatOf, perMinute, perSecond } from "../../ui/quantity.ts";

type Kind = NonNullable<ServiceMetricJson["kind"]>;

/** Colours of lines without a meaning, as variables of the style sheet. */
const COLOURS = ["--line-1", "--line-2", "--line-3", "--line-4", "--line-5", "--line-6"] as const;

export interface OwnChart {
  readonly name: string;
  readonly help: string;
  /** The newest revision declares it. Otherwise a library or a server exposes it, or an earlier one did. */
  readonly isDeclared: boolean;
  /** What its lines are, in which unit. */
  readonly detail: string;
  readonly format: Format;
  readonly binary: boolean;
  /** Its lines are percentiles, which may all be near each other and far from zero. */
  readonly isFitted: boolean;
  /** All of them, sorted by the numbers of the legend, the highest first. */
  readonly lines: readonly Line[];
  /** What it is looked at for. */
  readonly numbers: readonly ChartNumber[];
  /** Label sets that nodes do not keep, or that an answer has no room for: at least this number. */
  readonly leftOut: number;
}

const KINDS: Readonly<Record<string, Kind>> = {
  STATISTIC_RATE: "METRIC_KIND_COUNTER",
  STATISTIC_AVERAGE: "METRIC_KIND_GAUGE",
};

const PERCENTILES = [
  ["STATISTIC_P50", "p50", "--low"],
  ["STATISTIC_P95", "p95", "--middle"],
  ["STATISTIC_P99", "p99", "--high"],
] as const;

/** Units that end the names of metrics which nobody declared. */
const ENDINGS = /_(seconds|bytes|ratio|percent|celsius)(_total)?$/;

/** In the order of their declaration, then those that the newest revision does not declare. */
export function ownCharts(
  declared: readonly ServiceMetricJson[],
  { series = [], leftOut = {}, step = "0s", times = [] }: QueryMetricsResponseJson,
): readonly OwnChart[] {
  const byName = Map.groupBy(series, ({ name = "" }) => name);
  const undeclared = [...byName]
    .filter(([name]) => declared.every((metric) => metric.name !== name))
    .map(([name, [first]]): ServiceMetricJson => {
      const [, unit = ""] = ENDINGS.exec(name) ?? [];
      return { name, kind: kindOf(first), unit };
    });
  return [...declared, ...undeclared].map((metric): OwnChart => {
    const { name = "", kind = "METRIC_KIND_GAUGE", help, unit = "" } = metric;
    const sets = setsOf(byName.get(name) ?? [], kind);
    const several = sets.size > 1;
    const stepS = Number.parseFloat(step);
    const summedOf = (one: Measured) => summed(one, { kind, unit, stepS });
    const lines = several ? linesOf(sets, summedOf) : percentilesOf(sets, formatOf(unit));
    return {
      name,
      help: help ?? "",
      isDeclared: declared.includes(metric),
      detail: detailOf({ kind, unit, several }),
      format: formatIn(kind, unit),
      binary: unit === "bytes",
      isFitted: kind === "METRIC_KIND_HISTOGRAM",
      lines:
        kind === "METRIC_KIND_COUNTER" && !several
          ? lines.map((line) => ({ ...line, summary: summedOf(line).text }))
          : lines,
      numbers: numbersIn({ kind, unit, stepS, sets, lines, times: times.map(Number) }),
      leftOut: leftOut[name] ?? 0,
    };
  });
}

/** What the legend says of a label set. */
interface Summed {
  /** What label sets are sorted by. */
  readonly amount: number;
  readonly text: string;
}

/** Of the whole range: of a counter how much there was, of a gauge its average, of a histogram its p95. */
function summed(
  { values, whole = 0 }: Measured,
  { kind, unit, stepS }: Pick<Numbered, "kind" | "unit" | "stepS">,
): Summed {
  const format = formatOf(unit);
  if (kind === "METRIC_KIND_COUNTER") {
    const amount = values.reduce<number>((sum, value) => sum + (value ?? 0), 0);
    return { amount, text: `${format(totalOf(values, stepS))} in total` };
  }
  const words = kind === "METRIC_KIND_HISTOGRAM" ? "p95" : "on average";
  return { amount: whole, text: `${format(whole)} ${words}` };
}

interface Numbered {
  readonly kind: Kind;
  readonly unit: string;
  readonly stepS: number;
  readonly times: readonly number[];
  readonly sets: ReadonlyMap<string, LabelSet>;
  readonly lines: readonly Line[];
}

/** Of a counter the sum of all label sets; of one label set the last value of a gauge, or its percentiles. */
function numbersIn({ kind, unit, stepS, times, sets, lines }: Numbered): readonly ChartNumber[] {
  const format = formatOf(unit);
  if (kind === "METRIC_KIND_COUNTER") {
    const all = [...sets.values()].flatMap(({ measured }) => [...measured.values()]);
    const total = all.reduce((sum, { values }) => sum + totalOf(values, stepS), 0);
    return [[format(total), "in total"]];
  }
  const [only, second] = lines;
  if (sets.size !== 1 || only === undefined) {
    return [];
  }
  return kind === "METRIC_KIND_HISTOGRAM"
    ? percentileNumbers(only, second, format)
    : [latest(only.values, times, format)];
}

const kindOf = (series: MetricSeriesJson | undefined): Kind =>
  KINDS[series?.statistic ?? ""] ?? "METRIC_KIND_HISTOGRAM";

function formatIn(kind: Kind, unit: string): Format {
  const format = formatOf(unit);
  return kind !== "METRIC_KIND_COUNTER"
    ? format
    : unit === ""
      ? perMinute(format)
      : perSecond(format);
}

function detailOf(of: {
  readonly kind: Kind;
  readonly unit: string;
  readonly several: boolean;
}): string {
  const unit = of.unit === "" ? "" : ` in ${of.unit}`;
  switch (of.kind) {
    case "METRIC_KIND_COUNTER":
      return `Counter${unit}: increase per ${unit === "" ? "minute" : "second"}`;
    case "METRIC_KIND_HISTOGRAM":
      return `Histogram${unit}: ${of.several ? "p95" : "percentiles"}`;
    default:
      return `Gauge${unit}`;
  }
}

/** What was measured at each time, and of all times together. */
type Measured = Pick<Line, "values" | "whole">;

interface LabelSet {
  readonly labels: Readonly<Record<string, string>>;
  /** By statistic. */
  readonly measured: Map<string, Measured>;
}

const NOTHING: Measured = { values: [] };

/** By label set. A metric whose buckets have changed continues in the same lines. */
function setsOf(series: readonly MetricSeriesJson[], kind: Kind): ReadonlyMap<string, LabelSet> {
  const sets = new Map<string, LabelSet>();
  for (const one of series.filter((each) => kindOf(each) === kind)) {
    const { labels = {}, statistic = "" } = one;
    const key = JSON.stringify(Object.entries(labels).sort());
    const { measured } = sets.get(key) ?? { measured: new Map<string, Measured>() };
    const before = measured.get(statistic);
    measured.set(statistic, {
      values: numbersOf(one.values).map((value, index) => value ?? before?.values[index] ?? null),
      whole: wholeOf(one) ?? before?.whole,
    });
    sets.set(key, { labels, measured });
  }
  return sets;
}

/**
 * A line for each label set, the highest amount first. Within as many lines as there are colours, the
 * colours follow the names, so that a line keeps its colour when another passes it. The lines after
 * them have the same colours and are dashed.
 */
function linesOf(
  sets: ReadonlyMap<string, LabelSet>,
  summedOf: (one: Measured) => Summed,
): readonly Line[] {
  const all = [...sets.values()];
  const sorted = all
    .map(({ labels, measured }) => {
      const one = measured.get("STATISTIC_P95") ?? measured.values().next().value ?? NOTHING;
      return { name: nameOf(labels, all), values: one.values, ...summedOf(one) };
    })
    .sort((one, other) => other.amount - one.amount || (one.name < other.name ? -1 : 1));
  return sorted.map(({ name, values, text: summary }, index): Line => {
    const dashes = Math.floor(index / COLOURS.length);
    const peers = sorted.slice(dashes * COLOURS.length, (dashes + 1) * COLOURS.length);
    const place = peers.filter((other) => other.name < name).length;
    return { name, values, summary, dashes, colour: COLOURS[place] ?? COLOURS[0] };
  });
}

/** The only label set: a line, or one for each percentile, of which the legend has that of the whole range. */
function percentilesOf(sets: ReadonlyMap<string, LabelSet>, format: Format): readonly Line[] {
  const [only] = sets.values();
  return Array.from(only?.measured ?? [], ([statistic, measured]): Line => {
    const [, name, colour] = PERCENTILES.find(([one]) => one === statistic) ?? [];
    const kind = statistic === "STATISTIC_RATE" ? "increase" : "average";
    const line = { name: name ?? kind, colour: colour ?? COLOURS[0], ...measured };
    return name === undefined ? line : { ...line, summary: wholeText(line, format) };
  });
}

/** The labels that tell a set from the others. */
function nameOf(labels: LabelSet["labels"], all: readonly LabelSet[]): string {
  const different = Object.entries(labels).filter(([name, value]) =>
    all.some((other) => other.labels[name] !== value),
  );
  return different.length === 0
    ? "without other labels"
    : different
        .map(([name, value]) => `${name}=${value === "" ? '""' : isolated(value)}`)
        .join(" ");
}
