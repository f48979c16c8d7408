/**
 * The history that a Prometheus keeps, asked by its HTTP API. The organization,
 * and the deployment, are conditions of every query, so that no selector of a
 * caller reaches further.
 *
 * Rates are taken over a minute at least, for which that Prometheus has to scrape
 * the nodes twice a minute or more often.
 */
import { METRICS } from "../declarations.ts";
import { toLabels, toRecord } from "../labels.ts";
import { equals, type Matcher, NAME_LABEL } from "../selector/parse.ts";
import { writeSelector } from "../selector/write.ts";
import { type Upstream, UpstreamError } from "../upstream.ts";
import {
  type History,
  type HistoryAnswer,
  type HistoryQuery,
  type HistorySeries,
  MAX_CUSTOM_SERIES,
  sorted,
  type TasksAnswer,
  type TasksQuery,
} from "./history.ts";
import { MEASURES, type Measure, type MeasureName } from "./measures.ts";
import { type OwnMetric, ownMetrics } from "./own-metrics.ts";
import { Points, type PointsShape } from "./points.ts";
import { prometheusTasks } from "./prometheus-tasks.ts";
import { type Range, rangeOf } from "./range.ts";

/** Shortest time over which the rate of a counter is taken. */
const MIN_RATE_WINDOW_MS = 60_000;

/** Steps that are asked for: how far back it goes is known to the Prometheus alone. */
const LEVELS = [{ resolutionMs: 10_000, keptMs: Number.POSITIVE_INFINITY }];

/** Queries under way for one caller. */
const MAX_QUERIES_UNDER_WAY = 4;

interface Row {
  readonly metric: { readonly [label: string]: string };
  readonly values: readonly (readonly [seconds: number, value: string])[];
}

export class PrometheusHistory implements History {
  readonly #upstream: Pick<Upstream, "ask">;

  constructor(upstream: Pick<Upstream, "ask">) {
    this.#upstream = upstream;
  }

  async read(query: HistoryQuery): Promise<HistoryAnswer> {
    const range = rangeOf(query.range, LEVELS);
    const platform = await inTurns(query.measures, (name) => this.#measure(name, query, range));
    const metrics = await ownMetrics(this.#upstream, query, range);
    const own = await inTurns(metrics, (metric) => this.#own(metric, query, range));
    const found = sorted(own.flat());
    const surplus = Map.groupBy(found.slice(MAX_CUSTOM_SERIES), ({ name }) => name);
    const custom = found
      .slice(0, MAX_CUSTOM_SERIES)
      .flatMap(({ name, labels, points }) =>
        points.series({ name, custom: true, labels: toRecord(labels) }),
      );
    return {
      ...range,
      series: [...platform.flat(), ...custom],
      truncated: surplus.size > 0,
      leftOut: new Map(Array.from(surplus, ([name, all]) => [name, all.length])),
    };
  }

  tasks(query: TasksQuery): Promise<TasksAnswer> {
    return prometheusTasks(this.#upstream, query);
  }

  async #measure(
    name: MeasureName,
    query: HistoryQuery,
    range: Range,
  ): Promise<readonly HistorySeries[]> {
    const measure: Measure = MEASURES[name];
    const { name: metric, ...shape } = METRICS[measure.metric] as PointsShape & {
      readonly name: string;
    };
    const rows = await this.#query(queryOf(metric, measure, { query, range }), query, range);
    const points = new Points(shape, range);
    fill(points, shape, rows, range);
    return points.series({ name, custom: false, labels: {} });
  }

  async #own(metric: OwnMetric, query: HistoryQuery, range: Range) {
    const { name, kind, choice } = metric;
    const of = matcherText(kind === "histogram" ? `${name}_bucket` : name, query, metric.matchers);
    const change = kind === "gauge" ? "avg_over_time" : "rate";
    const over = `${change}(${of}[${windowOf(range)}])`;
    const rows = await this.#query(`sum without (node, instance, job) (${over})`, query, range);
    const groups = Map.groupBy(rows, ({ metric: labels }) => JSON.stringify(ownLabels(labels)));
    const series = [...groups.values()].map((group) => {
      const labels = ownLabels(group[0]?.metric ?? {});
      const buckets = boundsOf(group);
      const shape = { kind, buckets };
      return { name, labels, shape, group };
    });
    return series
      .filter(({ labels }) => choice.has(labels))
      .map(({ labels, shape, group }) => {
        const points = new Points(shape, range);
        fill(points, shape, group, range);
        return { name, labels, points };
      });
  }

  async #query(text: string, { signal }: HistoryQuery, range: Range): Promise<readonly Row[]> {
    const { fromMs, stepMs, points } = range;
    const data = await this.#upstream.ask(
      "/api/v1/query_range",
      {
        query: text,
        // A point is what was known at the end of its step.
        start: String((fromMs + stepMs) / 1_000),
        end: String((fromMs + points * stepMs) / 1_000),
        step: String(stepMs / 1_000),
      },
      signal,
    );
    const { result } = (data ?? {}) as { readonly result?: readonly Row[] };
    if (!Array.isArray(result)) {
      throw new UpstreamError("the Prometheus behind this platform answered without a result");
    }
    return result;
  }
}

/** The query of one of the platform's measures. */
function queryOf(
  metric: string,
  { kind, only, over, nodes }: Measure,
  { query, range }: { readonly query: HistoryQuery; readonly range: Range },
): string {
  const of = (name: string): string => {
    const text = matcherText(name, query, []);
    // The values are words of the platform's own.
    const limit = only && `${only.label}=~"${only.values.join("|")}"`;
    return limit === undefined ? text : `${text.slice(0, -1)},${limit}}`;
  };
  const window = windowOf(range);
  switch (kind) {
    case "histogram":
      return `sum by (le) (rate(${of(`${metric}_bucket`)}[${window}]))`;
    case "counter":
      return `sum(rate(${of(metric)}[${window}]))`;
    case "gauge": {
      const average = `avg_over_time(${of(metric)}[${window}])`;
      const joined =
        nodes === "max" ? `max by (organization, deployment, endpoint) (${average})` : average;
      return `${over ?? "sum"}(${joined})`;
    }
  }
}

function matcherText(
  name: string,
  { organization, deployment }: HistoryQuery,
  more: readonly Matcher[],
): string {
  const matchers = [equals(NAME_LABEL, name), ...more, equals("organization", organization)];
  if (deployment !== undefined) {
    matchers.push(equals("deployment", deployment.name));
  }
  return writeSelector({ matchers });
}

function windowOf({ stepMs }: Range): string {
  return `${Math.max(stepMs, MIN_RATE_WINDOW_MS)}ms`;
}

/** Adds the values of rows; those of a histogram are one row for each bucket. */
function fill(points: Points, shape: PointsShape, rows: readonly Row[], range: Range): void {
  const pointOf = (seconds: number): number =>
    Math.round((seconds * 1_000 - range.fromMs) / range.stepMs) - 1;
  if (shape.kind !== "histogram") {
    // Points of counters take increases.
    const factor = shape.kind === "counter" ? range.stepMs / 1_000 : 1;
    for (const [seconds, value] of rows.flatMap(({ values }) => values)) {
      points.add(pointOf(seconds), Number(value) * factor);
    }
    return;
  }
  const bounds = [...(shape.buckets ?? []), Number.POSITIVE_INFINITY];
  const upTo = new Map<number, number[]>();
  for (const { metric, values } of rows) {
    const bucket = bounds.indexOf(boundOf(metric));
    for (const [seconds, value] of values) {
      const counts = upTo.get(pointOf(seconds)) ?? Array<number>(bounds.length).fill(0);
      upTo.set(pointOf(seconds), counts);
      if (bucket >= 0) {
        counts[bucket] = Number(value);
      }
    }
  }
  for (const [point, counts] of upTo) {
    points.add(
      point,
      counts.map((count, index) => Math.max(0, count - (counts[index - 1] ?? 0))),
    );
  }
}

function boundOf({ le = "" }: Row["metric"]): number {
  return le === "+Inf" ? Number.POSITIVE_INFINITY : Number.parseFloat(le);
}

/** The finite bounds of a histogram, ascending. */
function boundsOf(rows: readonly Row[]): readonly number[] {
  const bounds = rows.map(({ metric }) => boundOf(metric)).filter(Number.isFinite);
  return [...new Set(bounds)].sort((one, other) => one - other);
}

function ownLabels(labels: Row["metric"]): readonly string[] {
  const platform = [NAME_LABEL, "organization", "deployment", "le"];
  return toLabels(Object.entries(labels).filter(([name]) => !platform.includes(name)));
}

/** Runs for every item, a few at a time. */
async function inTurns<Item, Result>(
  items: readonly Item[],
  run: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  for (let index = 0; index < items.length; index += MAX_QUERIES_UNDER_WAY) {
    const turn = items.slice(index, index + MAX_QUERIES_UNDER_WAY);
    results.push(...(await Promise.all(turn.map(run))));
  }
  return results;
}
