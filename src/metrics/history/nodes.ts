/**
 * What several nodes measured in one interval, as one. Counters and histograms
 * are summed. A gauge is summed over the nodes, or what its metric says; a node
 * that was restarted has two rows, which count by the time that they cover. Nodes
 * largely leave out the same series, so the largest number stands for all.
 */
import {
  type CustomValue,
  type Interval,
  keyOf,
  type Measurement,
  plus,
  raiseLeftOut,
} from "./interval.ts";
import { MEASURES, type Measure, type MeasureName } from "./measures.ts";

type Aggregator = "sum" | "min" | "max" | "average";

/** How long a gauge was measured, and how those of nodes become one. */
interface Measured {
  readonly coveredMs: number;
  readonly aggregator: Aggregator;
}

interface Gauge {
  sum: number;
  coveredMs: number;
  min: number;
  max: number;
}

/** Joins the intervals of all nodes. */
export function joinNodes(rows: readonly Interval[], resolutionMs: number): Interval {
  const [only] = rows;
  if (only !== undefined && rows.length === 1) {
    return only;
  }
  const platform = new Join<MeasureName>(resolutionMs);
  const custom = new Join<string>(resolutionMs);
  const described = new Map<string, CustomValue>();
  const leftOut = new Map<string, number>();
  for (const row of rows) {
    raiseLeftOut(leftOut, row.leftOut);
    for (const [name, value] of row.platform) {
      const { kind, nodes }: Measure = MEASURES[name];
      const gauge: Measured = { coveredMs: row.coveredMs, aggregator: nodes ?? "sum" };
      platform.add(name, value, kind === "gauge" ? gauge : undefined);
    }
    for (const one of row.custom) {
      const key = keyOf(one.metric, one.labels);
      described.set(key, one);
      const { kind, aggregator = "sum" } = one.metric;
      const gauge: Measured = { coveredMs: row.coveredMs, aggregator };
      custom.add(key, one.value, kind === "gauge" ? gauge : undefined);
    }
  }
  const values = custom.values();
  return {
    coveredMs: Math.max(...rows.map(({ coveredMs }) => coveredMs)),
    platform: platform.values(),
    custom: [...described].map(([key, one]) => ({ ...one, value: values.get(key) as Measurement })),
    leftOut,
  };
}

/** Sums by key. */
class Join<Key> {
  readonly #resolutionMs: number;
  readonly #sums = new Map<Key, Measurement>();
  readonly #gauges = new Map<Key, Gauge & { readonly aggregator: Aggregator }>();

  constructor(resolutionMs: number) {
    this.#resolutionMs = resolutionMs;
  }

  /** `gauge` for the value of a gauge. */
  add(key: Key, value: Measurement, gauge: Measured | undefined): void {
    if (gauge === undefined || typeof value !== "number") {
      const before = this.#sums.get(key);
      this.#sums.set(key, before === undefined ? value : plus(before, value));
      return;
    }
    const { aggregator, coveredMs } = gauge;
    const nothing = { sum: 0, coveredMs: 0, min: value, max: value, aggregator };
    const before = this.#gauges.get(key) ?? nothing;
    this.#gauges.set(key, {
      sum: before.sum + value * coveredMs,
      coveredMs: before.coveredMs + coveredMs,
      min: Math.min(before.min, value),
      max: Math.max(before.max, value),
      aggregator,
    });
  }

  values(): Map<Key, Measurement> {
    const values = new Map(this.#sums);
    for (const [key, { aggregator, sum, coveredMs, min, max }] of this.#gauges) {
      // Two rows that cover the interval together are one node before and after a restart.
      const wholeMs = Math.max(Math.min(coveredMs, this.#resolutionMs), 1);
      const average = sum / Math.max(coveredMs, 1);
      values.set(key, { sum: sum / wholeMs, min, max, average }[aggregator]);
    }
    return values;
  }
}
