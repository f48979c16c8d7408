/**
 * The text of an interval in the database. `platform` is an object of numbers
 * and arrays by the names of measures, with zeros left out. `custom` is an array
 * of metrics with their series, or of an organization the tally of its tasks;
 * empty where there are none.
 */
import type { CustomShape, CustomValue, Interval, Measurement } from "./interval.ts";
import { isZero, shapeKey } from "./interval.ts";
import { MEASURES, type MeasureName } from "./measures.ts";
import { type TaskTally, writeTally } from "./task-tally.ts";

interface StoredMetric extends CustomShape {
  readonly series: [labels: readonly string[], value: Measurement][];
}

export function writeInterval({ coveredMs, platform, custom, tasks }: Interval): {
  readonly platform: string;
  readonly custom: string;
} {
  const values: { [name: string]: Measurement } = { covered_ms: coveredMs };
  for (const [name, value] of platform) {
    // A gauge at zero is something else than one that is not known.
    if (MEASURES[name].kind === "gauge" || !isZero(value)) {
      values[name] = rounded(value);
    }
  }
  const metrics = new Map<string, StoredMetric>();
  for (const { metric, labels, value } of custom) {
    if (metric.kind !== "gauge" && isZero(value)) {
      continue;
    }
    const key = shapeKey(metric);
    const stored = metrics.get(key) ?? { ...shapeOf(metric), series: [] };
    stored.series.push([labels, rounded(value)]);
    metrics.set(key, stored);
  }
  return {
    platform: JSON.stringify(values),
    custom: metrics.size > 0 ? JSON.stringify([...metrics.values()]) : tallyText(tasks),
  };
}

function tallyText(tasks: TaskTally | undefined): string {
  return tasks === undefined ? "" : writeTally(tasks);
}

/** Reads a row of a deployment, or of an organization without `custom`. Measures that this version does not know are left out. */
export function readInterval(stored: {
  readonly platform: string;
  readonly custom: string;
}): Interval {
  const { covered_ms: coveredMs = 0, ...values } = JSON.parse(stored.platform) as {
    readonly covered_ms?: number;
  } & { readonly [name: string]: Measurement };
  const platform = new Map<MeasureName, Measurement>();
  for (const [name, value] of Object.entries(values)) {
    if (Object.hasOwn(MEASURES, name)) {
      platform.set(name as MeasureName, value);
    }
  }
  const metrics =
    stored.custom === "" ? [] : (JSON.parse(stored.custom) as readonly StoredMetric[]);
  const custom = metrics.flatMap(({ series, ...metric }): CustomValue[] =>
    series.map(([labels, value]) => ({ metric, labels, value })),
  );
  return { coveredMs, platform, custom };
}

function shapeOf({ name, kind, labels, buckets, aggregator }: CustomShape): CustomShape {
  return { name, kind, labels, ...(buckets && { buckets }), ...(aggregator && { aggregator }) };
}

/** More digits of an average would be noise. */
function rounded(value: Measurement): Measurement {
  return typeof value === "number" ? Number(value.toPrecision(6)) : value;
}
