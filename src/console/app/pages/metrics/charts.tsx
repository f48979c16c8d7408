/** The charts of a deployment, or of an organization: what each shows, and in which unit. */
import type {
  MetricSeriesJson,
  QueryMetricsResponseJson,
} from "../../../../../gen/tessera/v1/metrics_pb.js";
import type { AskedMetrics } from "../../api/metrics.ts";
import { bytes, count, type Format, perSecond, seconds } from "../../ui/quantity.ts";
import { Chart } from "./chart.tsx";
import { type Line, numbersOf } from "./line.ts";

type Metric = AskedMetrics["metrics"][number];

interface Shown {
  readonly title: string;
  readonly format: Format;
  readonly binary?: true;
  /** The name of a series, its statistic where it has several, what it is called, and its colour. */
  readonly lines: readonly (readonly [
    series: string,
    statistic: string,
    label: string,
    colour: string,
  ])[];
  readonly metrics: readonly Metric[];
}

const percentiles = (series: string): Shown["lines"] => [
  [series, "STATISTIC_P50", "half are faster", "--good"],
  [series, "STATISTIC_P95", "95 % are faster", "--warning"],
  [series, "STATISTIC_P99", "99 % are faster", "--bad"],
];

const CALLS: readonly Shown[] = [
  {
    title: "Calls",
    format: perSecond(count),
    metrics: ["METRIC_CALLS", "METRIC_CALL_ERRORS"],
    lines: [
      ["calls", "", "calls", "--accent"],
      ["call_errors", "", "errors", "--bad"],
    ],
  },
  {
    title: "Time to answer",
    format: seconds,
    metrics: ["METRIC_CALL_SECONDS"],
    lines: percentiles("call_seconds"),
  },
];

const TASKS: readonly Shown[] = [
  {
    title: "Tasks",
    format: perSecond(count),
    metrics: ["METRIC_TASKS_SUBMITTED", "METRIC_TASKS_SUCCEEDED", "METRIC_TASKS_FAILED"],
    lines: [
      ["tasks_submitted", "", "submitted", "--accent"],
      ["tasks_succeeded", "", "succeeded", "--good"],
      ["tasks_failed", "", "failed", "--bad"],
    ],
  },
  {
    title: "Queue",
    format: count,
    metrics: ["METRIC_TASKS_QUEUED", "METRIC_TASKS_RUNNING"],
    lines: [
      ["tasks_queued", "", "waiting", "--warning"],
      ["tasks_running", "", "running", "--accent"],
    ],
  },
  {
    title: "Time in the queue",
    format: seconds,
    metrics: ["METRIC_QUEUE_SECONDS"],
    lines: percentiles("queue_seconds"),
  },
  {
    title: "Run time of tasks",
    format: seconds,
    metrics: ["METRIC_RUN_SECONDS"],
    lines: percentiles("run_seconds"),
  },
];

const WORKERS: readonly Shown[] = [
  {
    title: "Workers",
    format: count,
    metrics: ["METRIC_WORKERS", "METRIC_WORKERS_STARTING", "METRIC_WORKERS_DESIRED"],
    lines: [
      ["workers_desired", "", "desired", "--warning"],
      ["workers", "", "ready", "--good"],
      ["workers_starting", "", "starting", "--accent"],
    ],
  },
  {
    title: "Memory of workers",
    format: bytes,
    binary: true,
    metrics: ["METRIC_WORKER_MEMORY_BYTES"],
    lines: [["worker_memory_bytes", "", "all workers", "--accent"]],
  },
];

/** Those of an overview, and all. */
export const CHARTS = {
  few: [CALLS[0], CALLS[1], TASKS[0], TASKS[2]].filter((one) => one !== undefined),
  all: [...CALLS, ...TASKS, ...WORKERS],
} as const satisfies Record<string, readonly Shown[]>;

/** What has to be asked for to draw them. */
export const metricsFor = (charts: readonly Shown[]): Metric[] =>
  charts.flatMap(({ metrics }) => metrics);

export function Charts({
  charts,
  measured,
}: {
  readonly charts: readonly Shown[];
  readonly measured: QueryMetricsResponseJson;
}) {
  const { times = [], series = [] } = measured;
  return (
    <div className="charts">
      {charts.map(({ title, format, binary, lines }) => (
        <Chart
          key={title}
          title={title}
          times={times.map(Number)}
          format={format}
          binary={binary}
          lines={lines.map(([name, statistic, label, colour]) => ({
            name: label,
            colour,
            values: valuesOf(series, { name, statistic, points: times.length }),
          }))}
        />
      ))}
    </div>
  );
}

function valuesOf(
  all: readonly MetricSeriesJson[],
  {
    name,
    statistic,
    points,
  }: { readonly name: string; readonly statistic: string; readonly points: number },
): Line["values"] {
  const found = all.find(
    (one) => one.name === name && !one.custom && (!statistic || one.statistic === statistic),
  );
  return found === undefined ? Array.from({ length: points }, () => null) : numbersOf(found.values);
}
