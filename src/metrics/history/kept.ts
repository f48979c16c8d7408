/** The history that nodes keep in their database. */
import type { MetricsStorage } from "../../storage/metrics/metrics.ts";
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
  sorted,
  type TasksAnswer,
  type TasksQuery,
} from "./history.ts";
import { type CustomValue, type Interval, keyOf, raiseLeftOut } from "./interval.ts";
import { keptTasks } from "./kept-tasks.ts";
import { MEASURES, type MeasureName } from "./measures.ts";
import { joinNodes } from "./nodes.ts";
import { Points } from "./points.ts";
import { type Range, rangeOf, resolutionOf } from "./range.ts";
import { historyRows } from "./rows.ts";
import { readInterval } from "./stored.ts";

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
