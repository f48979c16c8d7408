/**
 * The text of an interval in the database. `platform` is an object of numbers
 * and arrays by the names of measures, with zeros left out. `custom` is an array
 * of metrics with their series, followed by how many series were left out; or of
 * an organization the tally of its tasks; empty where there are none.
 */
import type { CustomShape, CustomValue, Interval, LeftOut, Measurement } from "./interval.ts";
import { isZero, shapeKey, toSixDigits } from "./interval.ts";
import { MEASURES, type MeasureName } from "./measures.ts";
import { type TaskTally, writeTally } from "./task-tally.ts";

interface StoredMetric extends CustomShape {
  readonly series: [labels: readonly string[], value: Measurement][];
}

/** It has the form of a metric without series, so that programs without it read over it. */
interface StoredLeftOut {
  readonly series: readonly never[];
  readonly left_out: { readonly [name: string]: number };
}

export function writeInterval({ coveredMs, platform, custom, leftOut, tasks }: Interval): {
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
  const stored = [...metrics.values(), ...storedLeftOut(leftOut)];
  return {
    platform: JSON.stringify(values),
    custom: stored.length > 0 ? JSON.stringify(stored) : tallyText(tasks),
  };
}

function storedLeftOut(leftOut: LeftOut = new Map()): StoredLeftOut[] {
  return leftOut.size === 0 ? [] : [{ series: [], left_out: Object.fromEntries(leftOut) }];
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
  const parts =
    stored.custom === ""
      ? []
      : (JSON.parse(stored.custom) as readonly (StoredMetric | StoredLeftOut)[]);
  const custom: CustomValue[] = [];
  let leftOut: LeftOut = new Map();
  for (const part of parts) {
    if ("left_out" in part) {
      leftOut = new Map(Object.entries(part.left_out));
    } else {
      const { series, ...metric } = part;
      custom.push(...series.map(([labels, value]) => ({ metric, labels, value })));
    }
  }
  return { coveredMs, platform, custom, leftOut };
}

function shapeOf({ name, kind, labels, buckets, aggregator }: CustomShape): CustomShape {
  return { name, kind, labels, ...(buckets && { buckets }), ...(aggregator && { aggregator }) };
}

function rounded(value: Measurement): Measurement {
  return typeof value === "number" ? toSixDigits(value) : value;
}
