/** The charts of a deployment, or of an organization: what each shows, and in which unit. */
import type { AskedMetrics } from "../../api/metrics.ts";
import { type ChartNumber, type Line, latest, percentileNumbers, totalOf } from "../../ui/line.ts";
import { bytes, count, type Format, percent, perMinute, seconds } from "../../ui/quantity.ts";

type Metric = AskedMetrics["metrics"][number];

export interface Shown {
  readonly title: string;
  readonly format: Format;
  readonly binary?: true;
  readonly isWhole?: true;
  /**
   * The name of a series, its statistic where it has several, what it is called, its colour, and how
   * it is dashed: a desired amount is a dashed line over the lines of the actual amounts.
   */
  readonly lines: readonly (readonly [
    series: string,
    statistic: string,
    label: string,
    colour: string,
    dashes?: number,
  ])[];
  /** Its lines are percentiles: the legend has those of the whole range. */
  readonly isPercentiles?: true;
  readonly metrics: readonly Metric[];
  /** The numbers that it is looked at for, of the whole range or of now, with what they are. */
  numbers(lines: readonly Line[], of: Steps): readonly ChartNumber[];
  /** What did not happen where it has no line. */
  readonly empty: string;
}

/** The points that all lines of a chart have. */
interface Steps {
  readonly times: readonly number[];
  readonly stepS: number;
}

/** The percentiles of how long something took. */
const timesOf = (series: string, about: Pick<Shown, "title" | "metrics" | "empty">): Shown => ({
  ...about,
  format: seconds,
  isPercentiles: true,
  numbers: ([p50, p95]) => percentileNumbers(p50, p95, seconds),
  lines: [
    [series, "STATISTIC_P50", "p50", "--low"],
    [series, "STATISTIC_P95", "p95", "--middle"],
    [series, "STATISTIC_P99", "p99", "--high"],
  ],
});

/** How many failed, and which part; in the colour of their line while there are any. */
const failures = (failed: number, all: number): ChartNumber =>
  failed > 0
    ? [count(failed), `failed (${percent(failed / Math.max(all, 1))})`, "--bad"]
    : ["0", "failed"];

interface Newest extends Pick<Steps, "times"> {
  readonly format: Format;
  readonly colour: string;
}

/** The last value of a line, and whether it is that of now. */
function newest(line: Line | undefined, words: string, of: Newest): ChartNumber {
  const [value, when] = latest(line?.values ?? [], of.times, of.format);
  return [value, `${words} ${when}`, of.colour];
}

const CALLS: readonly Shown[] = [
  {
    title: "Calls",
    format: perMinute(count),
    metrics: ["METRIC_CALLS", "METRIC_CALL_ERRORS"],
    numbers: ([calls, failed], { stepS }) => {
      const [all, bad] = [totalOf(calls?.values, stepS), totalOf(failed?.values, stepS)];
      return [[count(all), "calls", "--accent"], failures(bad, all)];
    },
    empty: "No calls in this time.",
    lines: [
      ["calls", "", "calls", "--accent"],
      ["call_errors", "", "failed", "--bad"],
    ],
  },
  timesOf("call_seconds", {
    title: "Call latency",
    metrics: ["METRIC_CALL_SECONDS"],
    empty: "No call was answered in this time.",
  }),
];

const TASKS: readonly Shown[] = [
  {
    title: "Tasks",
    format: perMinute(count),
    metrics: ["METRIC_TASKS_SUBMITTED", "METRIC_TASKS_SUCCEEDED", "METRIC_TASKS_FAILED"],
    numbers: ([succeeded, failed, submitted], { stepS }) => {
      const bad = totalOf(failed?.values, stepS);
      return [
        [count(totalOf(submitted?.values, stepS)), "submitted", "--accent"],
        failures(bad, totalOf(succeeded?.values, stepS) + bad),
      ];
    },
    empty: "No tasks in this time.",
    lines: [
      ["tasks_succeeded", "", "succeeded", "--good"],
      ["tasks_failed", "", "failed", "--bad"],
      ["tasks_submitted", "", "submitted", "--accent", 1],
    ],
  },
  {
    title: "Queue of tasks",
    format: count,
    isWhole: true,
    metrics: ["METRIC_TASKS_QUEUED", "METRIC_TASKS_RUNNING"],
    numbers: ([queued, running], { times }) => [
      newest(queued, "queued", { times, format: rounded, colour: "--warning" }),
      newest(running, "running", { times, format: rounded, colour: "--accent" }),
    ],
    empty: "No task was queued or running when it was measured.",
    lines: [
      ["tasks_queued", "", "queued", "--warning"],
      ["tasks_running", "", "running", "--accent"],
    ],
  },
  timesOf("queue_seconds", {
    title: "Queue time of tasks",
    metrics: ["METRIC_QUEUE_SECONDS"],
    empty: "No task began in this time.",
  }),
  timesOf("run_seconds", {
    title: "Run time of tasks",
    metrics: ["METRIC_RUN_SECONDS"],
    empty: "No task ended in this time.",
  }),
];

const WORKERS: readonly Shown[] = [
  {
    title: "Workers",
    format: count,
    isWhole: true,
    metrics: ["METRIC_WORKERS", "METRIC_WORKERS_STARTING", "METRIC_WORKERS_DESIRED"],
    numbers: ([ready], { times }) => [
      newest(ready, "ready", { times, format: rounded, colour: "--good" }),
    ],
    empty: "No worker was up in this time.",
    lines: [
      ["workers", "", "ready", "--good"],
      ["workers_starting", "", "starting", "--warning"],
      ["workers_desired", "", "desired", "--line-6", 1],
    ],
  },
  {
    title: "Memory of workers",
    format: bytes,
    binary: true,
    metrics: ["METRIC_WORKER_MEMORY_BYTES"],
    numbers: ([memory], { times }) => [
      newest(memory, "all workers", { times, format: bytes, colour: "--accent" }),
    ],
    empty: "No worker was up in this time.",
    lines: [["worker_memory_bytes", "", "all workers", "--accent"]],
  },
];

/** Charts of an overview, which has their numbers above them. */
const withoutNumbers = (charts: readonly (Shown | undefined)[]): readonly Shown[] =>
  charts.filter((one) => one !== undefined).map((one) => ({ ...one, numbers: () => [] }));

/** The charts of the overview of an organization, the charts of the overview of a deployment, and all. */
export const CHARTS = {
  few: withoutNumbers([CALLS[0], CALLS[1], TASKS[0], TASKS[2]]),
  trend: withoutNumbers([CALLS[0], TASKS[0]]),
  all: [...CALLS, ...TASKS, ...WORKERS],
} as const satisfies Record<string, readonly Shown[]>;

/** What has to be asked for to draw them. */
export const metricsFor = (charts: readonly Shown[]): Metric[] =>
  charts.flatMap(({ metrics }) => metrics);

/** Averages of what can be counted: a half is told, a hundredth is not. */
const rounded: Format = (value) => count(Math.round(value * 10) / 10);
