/** The charts of a deployment, or of an organization: what each shows, and in which unit. */
import type { AskedMetrics } from "../../api/metrics.ts";
import {
  type ChartNumber,
  highest,
  type Line,
  latest,
  percentileNumbers,
  totalOf,
} from "../../ui/line.ts";
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
  readonly metrics: readonly Metric[];
  /** The numbers that it is looked at for, from its lines, with what they are. */
  numbers(of: readonly Line["values"][], stepS: number): readonly ChartNumber[];
  /** What did not happen where it has no line. */
  readonly empty: string;
}

/** The percentiles of how long something took. */
const timesOf = (series: string, about: Pick<Shown, "title" | "metrics" | "empty">): Shown => ({
  ...about,
  format: seconds,
  numbers: ([p50 = [], p95 = []]) => percentileNumbers(p50, p95, seconds),
  lines: [
    [series, "STATISTIC_P50", "p50", "--low"],
    [series, "STATISTIC_P95", "p95", "--middle"],
    [series, "STATISTIC_P99", "p99", "--high"],
  ],
});

/** Failures have the colour of their line while there are any. */
const failures = (amount: number, text: string, words: string): ChartNumber =>
  amount > 0 ? [text, words, "--bad"] : [text, words];

const CALLS: readonly Shown[] = [
  {
    title: "Calls",
    format: perMinute(count),
    metrics: ["METRIC_CALLS", "METRIC_CALL_ERRORS"],
    numbers: ([calls = [], errors = []], stepS) => [
      [count(totalOf(calls, stepS)), "calls", "--accent"],
      failures(
        totalOf(errors, stepS),
        shareOf(totalOf(errors, stepS), totalOf(calls, stepS)),
        "errors",
      ),
    ],
    empty: "No calls in this time.",
    lines: [
      ["calls", "", "calls", "--accent"],
      ["call_errors", "", "errors", "--bad"],
    ],
  },
  timesOf("call_seconds", {
    title: "Time to answer calls",
    metrics: ["METRIC_CALL_SECONDS"],
    empty: "No call was answered in this time.",
  }),
];

const TASKS: readonly Shown[] = [
  {
    title: "Tasks",
    format: perMinute(count),
    metrics: ["METRIC_TASKS_SUBMITTED", "METRIC_TASKS_SUCCEEDED", "METRIC_TASKS_FAILED"],
    numbers: ([, failed = [], submitted = []], stepS) => [
      [count(totalOf(submitted, stepS)), "submitted", "--accent"],
      failures(totalOf(failed, stepS), count(totalOf(failed, stepS)), "failure"),
    ],
    empty: "No tasks in this time.",
    lines: [
      ["tasks_succeeded", "", "success", "--good"],
      ["tasks_failed", "", "failure", "--bad"],
      ["tasks_submitted", "", "submitted", "--accent", 1],
    ],
  },
  {
    title: "Queue of tasks",
    format: count,
    isWhole: true,
    metrics: ["METRIC_TASKS_QUEUED", "METRIC_TASKS_RUNNING"],
    numbers: ([queued = [], running = []]) => [
      [latest(queued, rounded), `waiting, peak ${highest(queued, rounded)}`, "--warning"],
      [latest(running, rounded), `running, peak ${highest(running, rounded)}`, "--accent"],
    ],
    empty: "No task was waiting or running when it was measured.",
    lines: [
      ["tasks_queued", "", "waiting", "--warning"],
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
    numbers: ([ready = []]) => [[latest(ready, rounded), "ready", "--good"]],
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
    numbers: ([memory = []]) => [[latest(memory, bytes), "all workers", "--accent"]],
    empty: "No worker was up in this time.",
    lines: [["worker_memory_bytes", "", "all workers", "--accent"]],
  },
];

/** The charts of the overview of an organization, the charts of the overview of a deployment, and all. */
export const CHARTS = {
  few: [CALLS[0], CALLS[1], TASKS[0], TASKS[2]].filter((one) => one !== undefined),
  trend: [CALLS[0], TASKS[0]].filter((one) => one !== undefined),
  all: [...CALLS, ...TASKS, ...WORKERS],
} as const satisfies Record<string, readonly Shown[]>;

/** What has to be asked for to draw them. */
export const metricsFor = (charts: readonly Shown[]): Metric[] =>
  charts.flatMap(({ metrics }) => metrics);

/** Averages of what can be counted: a half is told, a hundredth is not. */
const rounded: Format = (value) => count(Math.round(value * 10) / 10);

/** A part of a whole, such as `0.4 %`. */
const shareOf = (part: number, whole: number): string => percent(part / Math.max(whole, 1));
