/**
 * What the programs in the workers of one deployment expose in the format of Prometheus, without a
 * declaration of the service: the registries of libraries, and mounted servers.
 *
 * It is added up over workers as what services count themselves is (`custom-metrics.ts`). Since
 * nobody has declared it, each change says what its metric is. Where workers differ in that, as
 * those of two revisions may, the youngest worker is right, and the metric begins anew. What a
 * newer revision exposes no more ends with the last worker that did.
 */
import { GaugeValues } from "./custom-metric.ts";
import { toLabels } from "./labels.ts";
import {
  type AnySeries,
  GaugeSeries,
  type Group,
  HistogramSeries,
  KINDS,
  MutableGroup,
  type Owner,
  type SeriesBudget,
  samplesOf,
} from "./metric.ts";

/** Series that what the programs of one deployment expose has, each bucket counted as one. */
export const MAX_EXPOSED_SERIES = 2_000;

/** A metric, and how it has changed. The caller has validated it. */
export interface ExposedChanges {
  readonly name: string;
  readonly kind: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly buckets?: readonly number[];
  readonly aggregator?: "sum" | "min" | "max" | "average";
  readonly changes: readonly {
    /** Names and values in turns. */
    readonly labels: readonly string[];
    /** Absent for a gauge that is not there any more. */
    readonly value?: number;
    readonly counts?: readonly number[];
  }[];
}

interface ExposedOptions {
  readonly owner: Owner;
  readonly budget: SeriesBudget;
  /** Whether the service itself has a metric with series of this name. */
  isDeclared(name: string): boolean;
  /** Called for changes that there was no room for. */
  onDropped(events: number): void;
}

export class ExposedMetrics {
  readonly #options: ExposedOptions;
  readonly #metrics = new Map<string, ExposedMetric>();
  /** The metrics by the names of their samples, of which no two may have the same. */
  readonly #names = new Map<string, ExposedMetric>();
  /** How old workers are: the number in which each came. */
  readonly #ranks = new Map<string, number>();
  #lastRank = 0;
  #generation = 0;

  constructor(options: ExposedOptions) {
    this.#options = options;
  }

  get all(): Iterable<ExposedMetric> {
    return this.#metrics.values();
  }

  /** Applies what has changed in one worker. */
  take(workerId: string, exposed: ExposedChanges): void {
    const rank = this.#ranks.get(workerId) ?? this.#lastRank + 1;
    this.#lastRank = Math.max(rank, this.#lastRank);
    this.#ranks.set(workerId, rank);
    const metric = this.#find(exposed, rank);
    const dropped = metric?.take(workerId, exposed.changes) ?? exposed.changes.length;
    if (metric !== undefined) {
      metric.generation = this.#generation;
      if (metric.series.length === 0) {
        this.#end(metric);
      }
    }
    if (dropped > 0) {
      this.#options.onDropped(dropped);
    }
  }

  workerEnded(workerId: string): void {
    this.#ranks.delete(workerId);
    for (const metric of [...this.#metrics.values()]) {
      metric.workerEnded(workerId);
      this.#endOld(metric);
    }
  }

  /** A revision serves, whose service declares its own metrics anew. */
  serve(): void {
    this.#generation += 1;
    for (const metric of [...this.#metrics.values()]) {
      if (metric.names.some((name) => this.#options.isDeclared(name))) {
        this.#end(metric);
      } else {
        this.#endOld(metric);
      }
    }
  }

  end(): void {
    for (const metric of [...this.#metrics.values()]) {
      this.#end(metric);
    }
  }

  /** The metric of a change; undefined where there can be none. */
  #find(exposed: ExposedChanges, rank: number): ExposedMetric | undefined {
    const { name } = exposed;
    const known = this.#metrics.get(name);
    if (known?.isAs(exposed)) {
      return known;
    }
    if (known !== undefined) {
      if (rank <= known.rank) {
        return undefined;
      }
      this.#end(known);
    }
    const metric = new ExposedMetric(exposed, rank, this.#options);
    const isTaken = (part: string): boolean =>
      this.#names.has(part) || this.#options.isDeclared(part);
    if (metric.names.some(isTaken)) {
      return undefined;
    }
    this.#metrics.set(name, metric);
    for (const part of metric.names) {
      this.#names.set(part, metric);
    }
    return metric;
  }

  #endOld(metric: ExposedMetric): void {
    if (metric.generation < this.#generation && !metric.isUsed) {
      this.#end(metric);
    }
  }

  #end(metric: ExposedMetric): void {
    metric.end();
    this.#metrics.delete(metric.declaration.name);
    for (const name of metric.names) {
      this.#names.delete(name);
    }
  }
}

/** One of them. */
class ExposedMetric {
  readonly declaration: Omit<ExposedChanges, "changes">;
  /** That of the worker that said what it is. */
  readonly rank: number;
  /** The names of its samples, and its own. */
  readonly names: readonly string[];
  /** How many revisions had begun to serve when it changed last. */
  generation = 0;
  readonly #options: ExposedOptions;
  readonly #group = new MutableGroup();
  readonly #series = new Map<string, AnySeries>();
  readonly #gauges: GaugeValues;
  readonly #workers = new Set<string>();

  constructor({ changes, ...declaration }: ExposedChanges, rank: number, options: ExposedOptions) {
    const { name, kind, aggregator } = declaration;
    this.declaration = declaration;
    this.rank = rank;
    this.names = sampleNames(name, kind);
    this.#options = options;
    this.#gauges = new GaugeValues(aggregator);
  }

  get groups(): ReadonlyMap<string | undefined, Group> {
    return new Map([[this.#options.owner.organizationId, this.#group]]);
  }

  get series(): readonly AnySeries[] {
    return [...this.#series.values()];
  }

  /** Whether a worker that is up has it. */
  get isUsed(): boolean {
    return this.#workers.size > 0;
  }

  isAs({ kind, buckets = [], aggregator }: ExposedChanges): boolean {
    const own = this.declaration;
    return (
      own.kind === kind &&
      own.aggregator === aggregator &&
      (own.buckets ?? []).length === buckets.length &&
      buckets.every((bound, at) => bound === own.buckets?.[at])
    );
  }

  /** Returns how many changes there was no room for. */
  take(workerId: string, changes: ExposedChanges["changes"]): number {
    this.#workers.add(workerId);
    let dropped = 0;
    for (const { labels, value, counts = [] } of changes) {
      const isGone = value === undefined;
      const series = this.#find(labels, isGone);
      if (series === undefined && isGone) {
        continue;
      }
      if (series === undefined) {
        dropped += 1;
      } else if (series instanceof GaugeSeries) {
        this.#gauges.set(series, workerId, value);
      } else if (series instanceof HistogramSeries) {
        series.merge(counts, value ?? 0);
      } else {
        series.add(value ?? 0);
      }
    }
    this.#endUnset();
    return dropped;
  }

  workerEnded(workerId: string): void {
    this.#workers.delete(workerId);
    this.#gauges.workerEnded(workerId);
    this.#endUnset();
  }

  end(): void {
    const { series } = this;
    this.#options.budget.giveBack(series.length * samplesOf(this.declaration));
    this.#group.remove(series);
    this.#series.clear();
    this.#gauges.clear();
  }

  /** Ends gauges that no worker has a value of: their room is for others. */
  #endUnset(): void {
    if (this.declaration.kind !== "gauge") {
      return;
    }
    const unset: AnySeries[] = [];
    for (const [key, series] of this.#series) {
      if (series instanceof GaugeSeries && series.current === undefined) {
        unset.push(series);
        this.#series.delete(key);
      }
    }
    if (unset.length > 0) {
      this.#group.remove(unset);
      this.#options.budget.giveBack(unset.length);
    }
  }

  /** The series with these labels, which is made where there is room, unless `onlyKnown`. */
  #find(labels: readonly string[], onlyKnown: boolean): AnySeries | undefined {
    const key = JSON.stringify(labels);
    const known = this.#series.get(key);
    if (
      known !== undefined ||
      onlyKnown ||
      !this.#options.budget.take(samplesOf(this.declaration))
    ) {
      return known;
    }
    const pairs = labels.flatMap((name, at) =>
      at % 2 === 0 ? [[name, labels[at + 1] ?? ""] as const] : [],
    );
    const all = toLabels([...pairs, ...this.#options.owner.labels]);
    const series = new KINDS[this.declaration.kind](this.declaration, all);
    this.#group.add(series);
    this.#series.set(key, series);
    return series;
  }
}

/** The names that a metric takes: its own, and those of a histogram's parts. */
export function sampleNames(name: string, kind: ExposedChanges["kind"]): readonly string[] {
  const parts = kind === "histogram" ? ["", "_bucket", "_sum", "_count"] : [""];
  return parts.map((part) => name + part);
}
