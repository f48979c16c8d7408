/** The history that nodes keep in their database. */
import type {
  HistoryQuestion,
  HistoryValues,
  MetricsStorage,
} from "../../storage/metrics/metrics.ts";
import { METRICS } from "../declarations.ts";
import { toLabels, toRecord } from "../labels.ts";
import { type Choice, choose } from "../selector/choose.ts";
import type { Selector } from "../selector/parse.ts";
import { Yielder } from "../yielder.ts";
import {
  type HistoryAnswer,
  type HistoryQuery,
  type HistorySeries,
  MAX_COUNTED_SERIES,
  MAX_CUSTOM_SERIES,
  PERCENTILES,
  sorted,
  type TasksAnswer,
  type TasksQuery,
} from "./history.ts";
import {
  type CustomValue,
  type Interval,
  keyOf,
  type Measurement,
  raiseLeftOut,
  toSixDigits,
} from "./interval.ts";
import { MEASURES, type MeasureName } from "./measures.ts";
import { joinNodes } from "./nodes.ts";
import { percentile } from "./percentile.ts";
import { LEVELS, type Range, rangeOf, resolutionOf, settledAt } from "./range.ts";
import { readInterval } from "./stored.ts";
import { readTally, TaskTally } from "./task-tally.ts";

/** Endpoints that are told apart in one answer, of all nodes. */
const MAX_ANSWERED_ENDPOINTS = 5_000;

/** Windows up to this length are made of minutes, longer ones of ten minutes. */
const MAX_WINDOW_OF_MINUTES_MS = 3_600_000;

export class KeptHistory {
  readonly #storage: Pick<MetricsStorage, "readHistory">;

  constructor(storage: Pick<MetricsStorage, "readHistory">) {
    this.#storage = storage;
  }

  /** Throws a RangeFault, and errors of the database. */
  async read(query: HistoryQuery): Promise<HistoryAnswer> {
    const { organizationId, deployment, measures, selectors, signal } = query;
    const range = rangeOf(query.range);
    const resolutionMs = resolutionOf(range);
    const collected = new Collected(measures, selectors, range);
    const yielder = new Yielder();
    let interval: Interval[] = [];
    let beganAtMs = Number.NaN;
    const question = {
      organizationId,
      deploymentId: deployment?.deploymentId ?? "",
      resolutionMs,
      fromMs: range.fromMs,
      toMs: range.fromMs + range.points * range.stepMs,
      withCustom: selectors.length > 0,
    };
    for await (const row of historyRows(this.#storage, question, signal)) {
      if (row.beganAtMs !== beganAtMs) {
        collected.add(beganAtMs, joinNodes(interval, resolutionMs));
        interval = [];
        beganAtMs = row.beganAtMs;
      }
      interval.push(readInterval(row));
      // Twenty characters are read in about the time of a comparison.
      if (yielder.spent((row.platform.length + row.custom.length) / 20)) {
        await yielder.rest();
      }
    }
    collected.add(beganAtMs, joinNodes(interval, resolutionMs));
    return { ...range, ...(await collected.answer(yielder)) };
  }

  /**
   * Counts tasks by deployment and endpoint, from a bounded number of rows however many tasks
   * there were. Throws errors of the database. Until `settledAt` changes, it has no other answer.
   */
  tasks(query: TasksQuery): Promise<TasksAnswer> {
    return keptTasks(this.#storage, query);
  }
}

/** The points of an answer while rows are read. */
class Collected {
  readonly #range: Range;
  readonly #selectors: readonly Selector[];
  readonly #measures: ReadonlyMap<MeasureName, Points>;
  readonly #custom = new Map<string, CustomPoints>();
  readonly #choices = new Map<string, Choice | undefined>();
  /** Points in which anything was measured. */
  readonly #known = new Set<number>();
  /** Series that are one too many for an answer, by metric. */
  readonly #surplus = new Surplus();
  /** Series that nodes did not keep. */
  readonly #leftOut = new Map<string, number>();

  constructor(measures: readonly MeasureName[], selectors: readonly Selector[], range: Range) {
    this.#range = range;
    this.#selectors = selectors;
    this.#measures = new Map(
      measures.map((name) => [name, new Points(METRICS[MEASURES[name].metric], range)]),
    );
  }

  /** `beganAtMs` is NaN before the first interval. */
  add(beganAtMs: number, { platform, custom, leftOut = new Map() }: Interval): void {
    const point = Math.floor((beganAtMs - this.#range.fromMs) / this.#range.stepMs);
    if (!(point >= 0 && point < this.#range.points)) {
      return;
    }
    this.#known.add(point);
    for (const [name, points] of this.#measures) {
      points.known(point);
      const value = platform.get(name);
      if (value !== undefined) {
        points.add(point, value);
      }
    }
    for (const one of custom) {
      this.#pointsOf(one)?.add(point, one.value);
    }
    const selected = [...leftOut].filter(([name]) => this.#choiceOf(name) !== undefined);
    raiseLeftOut(this.#leftOut, new Map(selected));
  }

  async answer(yielder: Yielder): Promise<Omit<HistoryAnswer, keyof Range>> {
    const series: HistorySeries[] = [];
    for (const [name, points] of this.#measures) {
      series.push(...points.series({ name, custom: false, labels: {} }));
    }
    for (const { name, labels, points } of sorted([...this.#custom.values()])) {
      for (const point of this.#known) {
        points.known(point);
      }
      series.push(...points.series({ name, custom: true, labels: toRecord(labels) }));
      if (yielder.spent(this.#range.points)) {
        await yielder.rest();
      }
    }
    const { counts } = this.#surplus;
    const names = new Set([...counts.keys(), ...this.#leftOut.keys()]);
    const leftOut = Array.from(names, (name) => {
      const number = (counts.get(name) ?? 0) + (this.#leftOut.get(name) ?? 0);
      return [name, number] as const;
    });
    return { series, truncated: counts.size > 0, leftOut: new Map(leftOut) };
  }

  /** Undefined for a series that was not selected, or is one too many. */
  #pointsOf({ metric, labels: values }: CustomValue): Points | undefined {
    const { name } = metric;
    const choice = this.#choiceOf(name);
    if (choice === undefined) {
      return undefined;
    }
    const key = keyOf(metric, values);
    const known = this.#custom.get(key);
    if (known !== undefined) {
      return known.points;
    }
    const labels = toLabels(metric.labels.map((label, index) => [label, values[index] ?? ""]));
    if (!choice.has(labels)) {
      return undefined;
    }
    if (this.#custom.size >= MAX_CUSTOM_SERIES) {
      this.#surplus.add(name, key);
      return undefined;
    }
    const points = new Points(metric, this.#range);
    this.#custom.set(key, { name, labels, points });
    return points;
  }

  #choiceOf(name: string): Choice | undefined {
    if (!this.#choices.has(name)) {
      this.#choices.set(name, choose(this.#selectors, name));
    }
    return this.#choices.get(name);
  }
}

/** Counts different series by their metric, a bounded number. */
class Surplus {
  readonly counts = new Map<string, number>();
  readonly #keys = new Set<string>();

  add(name: string, key: string): void {
    if (this.#keys.size < MAX_COUNTED_SERIES && !this.#keys.has(key)) {
      this.#keys.add(key);
      this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
    }
  }
}

interface CustomPoints {
  readonly name: string;
  readonly labels: readonly string[];
  readonly points: Points;
}

/** Points: the values of one series, summed up step by step from intervals. */
type Described = Pick<HistorySeries, "name" | "custom" | "labels">;

/** Kind and buckets of the metric. */
interface PointsShape {
  readonly kind: "counter" | "gauge" | "histogram";
  readonly buckets?: readonly number[];
}

class Points {
  readonly #shape: PointsShape;
  readonly #range: Range;
  readonly #sums: Float64Array;
  /** Of gauges: how many values a point has. */
  readonly #counts: Uint32Array;
  readonly #buckets: (number[] | undefined)[] = [];

  constructor(shape: PointsShape, range: Range) {
    this.#shape = shape;
    this.#range = range;
    this.#sums = new Float64Array(range.points).fill(Number.NaN);
    this.#counts = new Uint32Array(range.points);
  }

  /** Something was measured then, if only that nothing happened. */
  known(point: number): void {
    if (this.#shape.kind === "counter" && Number.isNaN(this.#sums[point])) {
      this.#sums[point] = 0;
    }
  }

  add(point: number, value: Measurement): void {
    if (this.#shape.kind === "histogram") {
      if (typeof value !== "number") {
        const before = this.#buckets[point];
        this.#buckets[point] = value.map((count, index) => count + (before?.[index] ?? 0));
      }
    } else if (typeof value === "number") {
      const before = this.#sums[point] as number;
      this.#sums[point] = Number.isNaN(before) ? value : before + value;
      this.#counts[point] = (this.#counts[point] as number) + 1;
    }
  }

  /** The series that are answered: one, or three percentiles. */
  series(described: Described): HistorySeries[] {
    const { kind, buckets = [] } = this.#shape;
    const { points, stepMs } = this.#range;
    if (kind === "histogram") {
      const all: number[] = [];
      for (const counts of this.#buckets) {
        for (const [index, count] of counts?.entries() ?? []) {
          all[index] = (all[index] ?? 0) + count;
        }
      }
      return PERCENTILES.map(([statistic, fraction]) => {
        const at = (counts: readonly number[] = []) =>
          toSixDigits(percentile(fraction, counts, buckets));
        const values = Array.from({ length: points }, (_, point) => at(this.#buckets[point]));
        return { ...described, statistic, values, whole: at(all) };
      });
    }
    const isCounter = kind === "counter";
    const statisticOf = (sum: number, counted: number) =>
      toSixDigits(isCounter ? (sum / stepMs / counted) * 1_000 : sum / counted);
    const values = Array.from(this.#sums, (sum, point) =>
      statisticOf(sum, isCounter ? 1 : (this.#counts[point] as number)),
    );
    const known = this.#sums.filter((sum) => !Number.isNaN(sum));
    const counted = isCounter ? known.length : this.#counts.reduce((sum, one) => sum + one, 0);
    const whole = statisticOf(
      known.reduce((sum, one) => sum + one, 0),
      counted,
    );
    return [{ ...described, statistic: isCounter ? "rate" : "average", values, whole }];
  }
}

// The tasks of an organization, from the tallies that nodes keep in their database.

/** Rows of one resolution that cover a time. */
interface Stretch {
  readonly resolutionMs: number;
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * Splits a window that ends now into stretches of few rows: of the coarsest resolution as far
 * as its rows are complete, then of finer ones. It begins with a row of the coarsest, up to one
 * such row early.
 */
export function stretchesOf({
  windowMs,
  nowMs,
}: Pick<TasksQuery, "windowMs" | "nowMs">): readonly Stretch[] {
  const endMs = settledAt(nowMs);
  const levels = windowMs > MAX_WINDOW_OF_MINUTES_MS ? LEVELS : LEVELS.slice(0, -1);
  const stretches: Stretch[] = [];
  let fromMs = endMs - windowMs;
  for (const { resolutionMs } of levels.toReversed()) {
    fromMs -= fromMs % resolutionMs;
    const toMs = endMs - (endMs % resolutionMs);
    if (toMs > fromMs) {
      stretches.push({ resolutionMs, fromMs, toMs });
      fromMs = toMs;
    }
  }
  return stretches;
}

async function keptTasks(
  storage: Pick<MetricsStorage, "readHistory">,
  query: TasksQuery,
): Promise<TasksAnswer> {
  const tally = new TaskTally(MAX_ANSWERED_ENDPOINTS);
  const yielder = new Yielder();
  const stretches = stretchesOf(query);
  for (const stretch of stretches) {
    const question = {
      ...stretch,
      organizationId: query.organizationId,
      deploymentId: "",
      withCustom: true,
    };
    for await (const { custom } of historyRows(storage, question)) {
      readTally(custom, tally);
      // Twenty characters are read in about the time of a comparison.
      if (yielder.spent(custom.length / 20)) {
        await yielder.rest();
      }
    }
  }
  const toMs = settledAt(query.nowMs);
  return { fromMs: stretches[0]?.fromMs ?? toMs - query.windowMs, toMs, tally };
}

// Reads rows of metrics over time, a bounded number at once.

/** Rows of metrics over time that are read at once. */
const MAX_HISTORY_ROWS_PER_READ = 200;

/** The rows that answer a question, by time. Throws when `signal` aborts. */
async function* historyRows(
  storage: Pick<MetricsStorage, "readHistory">,
  question: Omit<HistoryQuestion, "after" | "limit">,
  signal?: AbortSignal,
): AsyncGenerator<HistoryValues> {
  const limit = MAX_HISTORY_ROWS_PER_READ;
  let rows: readonly HistoryValues[] = [];
  do {
    signal?.throwIfAborted();
    const after = rows.at(-1);
    rows = await storage.readHistory({ ...question, limit, ...(after && { after }) });
    yield* rows;
  } while (rows.length === limit);
}
