/** `tessera deployment metrics`: what was measured of a deployment over time. */
import { type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import {
  Metric,
  type MetricSeries,
  type QueryMetricsResponse,
  QueryMetricsResponseSchema,
  Statistic,
} from "../../client/index.ts";
import { inUnits } from "../../collections/sizes.ts";
import { type CloudActions, callCommand, option, repeatable } from "../command.ts";
import { parseDuration } from "../durations.ts";
import { usageError } from "../failure.ts";
import { type Table, table } from "../table.ts";

interface MetricsFlags {
  readonly since: string;
  readonly metric?: readonly string[];
  readonly select?: readonly string[];
}

export function metricsCommand(actions: CloudActions): Command {
  return callCommand<MetricsFlags>("metrics", actions, {
    description: "Show what was measured of a deployment, or of all of them, over time.",
    arguments: [["[name]", "the deployment's name (default: all of the organization together)"]],
    options: [
      option("--since <duration>", "how far back: up to 7d").default("1h"),
      repeatable("--metric <name>", "one of the platform's metrics, such as calls (default: all)"),
      repeatable("--select <selector>", "metrics of the service itself, such as tokens_total"),
    ],
    examples: [
      "tessera deployment metrics summarizer",
      "tessera deployment metrics summarizer --since 24h --metric calls --metric call_seconds",
      "tessera deployment metrics summarizer --select 'tokens_total{model=\"small\"}'",
      "tessera deployment metrics summarizer --output json",
    ],
    run: async (call, { since, metric = [], select = [] }, [name = ""]) => {
      const answer = await call.client.metrics.queryMetrics({
        organization: call.organization,
        deployment: name,
        metrics: metric.map(metricOf),
        selectors: [...select],
        startTime: before(call.clock.now(), parseDuration("--since", since)),
      });
      call.show(QueryMetricsResponseSchema, answer, metricsTable);
      for (const [metric, series] of Object.entries(answer.leftOut)) {
        call.done(
          `At least ${series} more series of ${metric} are not shown: nodes keep 100 of a deployment, and an answer has 100. Select fewer with --select, or give the metric fewer labels.`,
        );
      }
    },
  });
}

function before(nowMs: number, lengthMs: number): Timestamp {
  return timestampFromMs(nowMs - lengthMs);
}

function metricOf(name: string): Metric {
  const metrics = Object.entries(Metric).filter((entry): entry is [string, Metric] => {
    const [word, value] = entry;
    return typeof value === "number" && word === word.toUpperCase() && value !== Metric.UNSPECIFIED;
  });
  const found = metrics.find(([word]) => word.toLowerCase() === name);
  if (found === undefined) {
    const names = metrics.map(([word]) => word.toLowerCase()).join(", ");
    throw usageError(
      `--metric ${JSON.stringify(name)} does not exist: give one of ${names}, or --select for a metric of the service`,
    );
  }
  return found[1];
}

/** A line for each series: its newest value, its average and its peak. */
function metricsTable({ series }: QueryMetricsResponse): Table {
  return table(
    ["METRIC", "VALUE", "LAST", "AVERAGE", "PEAK"],
    series.map((one) => {
      const known = one.values.filter((value) => !Number.isNaN(value));
      const sum = known.reduce((all, value) => all + value, 0);
      const numbers =
        known.length === 0
          ? []
          : [known.at(-1) ?? 0, sum / known.length, Math.max(...known)].map((value) =>
              shown(one, value),
            );
      return [titleOf(one), statisticOf(one), ...numbers, "", "", ""].slice(0, 5);
    }),
    { empty: "No metrics", drop: ["PEAK"] },
  );
}

function titleOf({ name, labels }: MetricSeries): string {
  const pairs = Object.entries(labels).map(([label, value]) => `${label}=${JSON.stringify(value)}`);
  return pairs.length === 0 ? name : `${name}{${pairs.join(",")}}`;
}

function statisticOf({ name, statistic }: MetricSeries): string {
  if (statistic === Statistic.RATE) {
    return name === "worker_cpu" ? "cores" : "per second";
  }
  return (Statistic[statistic] ?? "").toLowerCase();
}

function shown({ name, custom }: MetricSeries, value: number): string {
  if (!custom && name.endsWith("_bytes")) {
    return inUnits(Math.round(value));
  }
  const text = String(Number(value.toPrecision(Math.abs(value) < 1000 ? 3 : 15)));
  return !custom && name.endsWith("_seconds") ? `${text} s` : text;
}
