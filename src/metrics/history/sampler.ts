/**
 * The sampler: what a deployment's metrics on this node have done since they
 * were looked at last, as an interval.
 */
import { labelOf, toRecord } from "../labels.ts";
import { type AnySeries, CounterSeries, GaugeSeries, type SampleSeries } from "../metric.ts";
import type { DeploymentMetrics } from "../metrics.ts";
import { CustomRoom, type CustomValue, type Interval, type Measurement, plus } from "./interval.ts";
import { MEASURE_NAMES, MEASURES, type Measure, type MeasureName } from "./measures.ts";
import {
  type CallSums,
  COUNTED_AS,
  NO_CALLS,
  NO_TASKS,
  sumOf,
  sumOfCalls,
  type TaskSums,
} from "./task-tally.ts";

interface Sampled {
  readonly interval: Interval;
  readonly tasks: ReadonlyMap<string, TaskSums>;
  readonly calls: ReadonlyMap<string, CallSums>;
}

export class Sampler {
  /** Totals of counters and histograms as they were last; a series that is gone takes its own along. */
  readonly #totals = new WeakMap<AnySeries, Measurement>();

  /** What has changed since the last call for the same deployment; its tasks and calls by endpoint. */
  sample(metrics: DeploymentMetrics, coveredMs: number): Sampled {
    const increases = new Map<AnySeries, Measurement | undefined>();
    const read = (series: AnySeries): Measurement | undefined => {
      // Several measures may be of one series.
      if (!increases.has(series)) {
        increases.set(series, this.#read(series));
      }
      return increases.get(series);
    };
    const platform = new Map<MeasureName, Measurement>();
    for (const name of MEASURE_NAMES) {
      const measure: Measure = MEASURES[name];
      const value = measured(measure, metrics.seriesOf(measure.metric), read);
      if (value !== undefined) {
        platform.set(name, value);
      }
    }
    const interval = { coveredMs, platform, ...customOf(metrics, read) };
    return { interval, tasks: tasksOf(metrics, read), calls: callsOf(metrics, read) };
  }

  #read(series: AnySeries): Measurement | undefined {
    if (series instanceof GaugeSeries) {
      return series.current;
    }
    const total = series instanceof CounterSeries ? series.total : Array.from(series.counts);
    const before = this.#totals.get(series);
    this.#totals.set(series, total);
    return before === undefined ? total : plus(total, negative(before));
  }
}

function negative(value: Measurement): Measurement {
  return typeof value === "number" ? -value : value.map((each) => -each);
}

/** A measure over all series of its metric: those of endpoints, protocols, codes. */
function measured(
  { only, over }: Measure,
  list: readonly AnySeries[],
  read: (series: AnySeries) => Measurement | undefined,
): Measurement | undefined {
  let result: Measurement | undefined;
  for (const series of list) {
    const value = read(series);
    const counts =
      only === undefined || only.values.includes(labelOf(labelsOf(series), only.label));
    if (value === undefined || !counts) {
      continue;
    }
    if (result === undefined) {
      result = value;
    } else if (over === "max" && typeof value === "number" && typeof result === "number") {
      result = Math.max(result, value);
    } else {
      result = plus(result, value);
    }
  }
  return result;
}

/** What has ended, waited and run, by endpoint. */
function tasksOf(
  metrics: DeploymentMetrics,
  read: (series: AnySeries) => Measurement | undefined,
): Map<string, TaskSums> {
  const tasks = new Map<string, TaskSums>();
  const add = (series: AnySeries, sums: Partial<TaskSums>): void => {
    const endpoint = labelOf(labelsOf(series), "endpoint");
    tasks.set(endpoint, sumOf(tasks.get(endpoint) ?? NO_TASKS, { ...NO_TASKS, ...sums }));
  };
  for (const series of metrics.seriesOf("tasksFinished")) {
    const field = COUNTED_AS[labelOf(labelsOf(series), "outcome")];
    const value = read(series);
    if (field !== undefined && typeof value === "number") {
      add(series, { [field]: value });
    }
  }
  for (const [metric, field] of [
    ["queueWait", "queueCounts"],
    ["runTime", "runCounts"],
  ] as const) {
    for (const series of metrics.seriesOf(metric)) {
      const value = read(series);
      if (value !== undefined && typeof value !== "number") {
        add(series, { [field]: value });
      }
    }
  }
  return tasks;
}

/** What was answered, and how long that took, by endpoint. */
function callsOf(
  metrics: DeploymentMetrics,
  read: (series: AnySeries) => Measurement | undefined,
): Map<string, CallSums> {
  const calls = new Map<string, CallSums>();
  const add = (series: AnySeries, sums: Partial<CallSums>): void => {
    const endpoint = labelOf(labelsOf(series), "endpoint");
    calls.set(endpoint, sumOfCalls(calls.get(endpoint) ?? NO_CALLS, { ...NO_CALLS, ...sums }));
  };
  for (const series of metrics.seriesOf("requests")) {
    const value = read(series);
    if (typeof value === "number") {
      const code = labelOf(labelsOf(series), "code");
      const isFailed = code !== "ok" && value > 0;
      add(series, {
        answered: value,
        ...(isFailed && { failed: value, codes: new Map([[code, value]]) }),
      });
    }
  }
  for (const series of metrics.seriesOf("requestDuration")) {
    const value = read(series);
    if (value !== undefined && typeof value !== "number") {
      add(series, { counts: value });
    }
  }
  return calls;
}

/** Labels that every series of a deployment has, and that of a bucket: they tell no series from another. */
const COMMON_LABELS: ReadonlySet<string> = new Set(["organization", "deployment", "node", "le"]);

/**
 * As many series as are kept: the oldest of each metric in turns, so that none takes all the room.
 * What programs in the workers expose, which nobody chose, has the room that is left; of it, only
 * metrics that are kept in part are counted as left out, for there may be 2,000.
 */
function customOf(
  metrics: DeploymentMetrics,
  read: (series: AnySeries) => Measurement | undefined,
): Required<Pick<Interval, "custom" | "leftOut">> {
  const room = new CustomRoom();
  const custom: CustomValue[] = [];
  const leftOut = new Map<string, number>();
  /** Whether there was room for a series that has a value. */
  const keep = (series: AnySeries, of: Pick<CustomValue, "metric" | "labels">): boolean => {
    // Read in any case, so that its increase is that of one interval when there is room again.
    const value = read(series);
    const hasRoom = value === undefined || room.take({ ...of, value });
    if (value !== undefined && hasRoom) {
      custom.push({ ...of, value });
    }
    return hasRoom;
  };
  const miss = (name: string) => leftOut.set(name, (leftOut.get(name) ?? 0) + 1);
  for (const [{ declaration }, series] of inTurns(metrics.custom.all)) {
    const { help, ...metric } = declaration;
    const names = metric.kind === "gauge" ? metric.labels : ["endpoint", ...metric.labels];
    const labels = names.map((name) => labelOf(labelsOf(series), name));
    if (!keep(series, { metric: { ...metric, labels: names }, labels })) {
      miss(metric.name);
    }
  }
  const exposed = new Set<string>();
  for (const [{ declaration }, series] of inTurns(metrics.custom.exposed)) {
    const { help, ...metric } = declaration;
    const own = Object.entries(toRecord(labelsOf(series))).filter(
      ([name]) => !COMMON_LABELS.has(name),
    );
    const labels = own.map(([, value]) => value);
    if (keep(series, { metric: { ...metric, labels: own.map(([name]) => name) }, labels })) {
      exposed.add(metric.name);
    } else if (exposed.has(metric.name)) {
      miss(metric.name);
    }
  }
  return { custom, leftOut };
}

/** The first series of each metric, then the second of each, and so on. */
function* inTurns<Metric extends { readonly series: readonly AnySeries[] }>(
  metrics: Iterable<Metric>,
): Generator<readonly [Metric, AnySeries]> {
  const lists = Array.from(metrics, (metric) => [metric, metric.series] as const);
  const longest = Math.max(0, ...lists.map(([, series]) => series.length));
  for (let turn = 0; turn < longest; turn += 1) {
    for (const [metric, series] of lists) {
      const one = series[turn];
      if (one !== undefined) {
        yield [metric, one];
      }
    }
  }
}

function labelsOf(series: AnySeries): SampleSeries["labels"] {
  return (series.parts[0] as SampleSeries).labels;
}
