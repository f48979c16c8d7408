/**
 * The series of one metric.
 *
 * They are partitioned into groups, one per organization and one without an
 * organization for the node itself. Ownership is the group, never a label. A
 * group has at most `maxSeries` series; an event that would need one more is
 * dropped, and the drop is counted.
 *
 * Series are found in a trie of maps, one level per label. Label values are
 * short, recurring strings, so a level costs a few dozen nanoseconds; joining
 * them to one key would allocate a string.
 */
import { type Declaration, LABELS, type LabelDeclaration } from "./declarations.ts";
import type { AddedLabels } from "./external-labels.ts";
import { type Labels, toLabels } from "./labels.ts";
import { formatNumber } from "./number.ts";

// Series: counters, gauges and histograms with one set of labels each.

/** A series in Prometheus' sense: a name, labels, and the newest sample. */
export interface SampleSeries {
  readonly name: string;
  readonly labels: Labels;
  /** The beginning of a line with the added labels: `name{a="1",instance=""} `. */
  begin(added: AddedLabels): string;
  /** The value, which may be NaN; undefined when there is no sample or the series has ended. */
  value(): number | undefined;
  /** The time of the value, in milliseconds since 1970. */
  timestampMs(nowMs: number): number;
}

/** The base of all kinds of series. */
abstract class Series {
  /** Its series in Prometheus' sense. */
  readonly parts: readonly SampleSeries[];
  /** Its deployment or its worker is gone: it is no longer shown. */
  ended = false;

  protected constructor(parts: (series: never) => readonly SampleSeries[]) {
    this.parts = parts(this as never);
  }
}

export class CounterSeries extends Series {
  #total = 0;

  constructor({ name }: Pick<Declaration, "name">, labels: Labels) {
    super((series: CounterSeries) => [
      new Part({ name, labels, read: () => (series.ended ? undefined : series.#total) }),
    ]);
  }

  add(amount = 1): void {
    this.#total += amount;
  }

  get total(): number {
    return this.#total;
  }

  /** Sets a total that is counted by another component; it never decreases. */
  reach(total: number): void {
    this.#total = Math.max(this.#total, total);
  }
}

export class GaugeSeries extends Series {
  #value: number | undefined;
  #setAtMs: number | undefined;

  constructor({ name }: Pick<Declaration, "name">, labels: Labels) {
    super((series: GaugeSeries) => [
      new Part({
        name,
        labels,
        read: () => (series.ended ? undefined : series.#value),
        timestampMs: (nowMs) => series.#setAtMs ?? nowMs,
      }),
    ]);
  }

  /** Sets the value with its time; without a time, the value is current until the next one. */
  set(value: number, nowMs?: number): void {
    this.#value = value;
    this.#setAtMs = nowMs;
  }

  /** Undefined while it is not set. */
  get current(): number | undefined {
    return this.#value;
  }

  /** Removes the value: the gauge is left out until it is set again. */
  unset(): void {
    this.#value = undefined;
  }
}

export class HistogramSeries extends Series {
  readonly #bounds: readonly number[];
  /** Non-cumulative counts per bucket; the last one is +Inf. */
  readonly #counts: Float64Array;
  #sum = 0;

  constructor({ name, buckets = [] }: Pick<Declaration, "name" | "buckets">, labels: Labels) {
    super((series: HistogramSeries) => [
      ...[...buckets, Number.POSITIVE_INFINITY].map(
        (bound, index) =>
          new Part({
            name: `${name}_bucket`,
            labels: withLabel(labels, "le", formatNumber(bound)),
            read: () => series.#upTo(index),
          }),
      ),
      new Part({
        name: `${name}_sum`,
        labels,
        read: () => (series.ended ? undefined : series.#sum),
      }),
      new Part({ name: `${name}_count`, labels, read: () => series.#upTo(buckets.length) }),
    ]);
    this.#bounds = buckets;
    this.#counts = new Float64Array(buckets.length + 1);
  }

  /** How many values each bucket has by itself, +Inf last. */
  get counts(): ArrayLike<number> {
    return this.#counts;
  }

  observe(value: number): void {
    const bounds = this.#bounds;
    let index = 0;
    while (index < bounds.length && value > (bounds[index] as number)) {
      index += 1;
    }
    this.#counts[index] = (this.#counts[index] as number) + 1;
    this.#sum += value;
  }

  /** Adds values observed by a worker, as non-cumulative counts per bucket, +Inf last. */
  merge(counts: readonly number[], sum: number): void {
    for (const [index, count] of counts.entries()) {
      this.#counts[index] = (this.#counts[index] as number) + count;
    }
    this.#sum += sum;
  }

  #upTo(last: number): number | undefined {
    if (this.ended) {
      return undefined;
    }
    let count = 0;
    for (let index = 0; index <= last; index += 1) {
      count += this.#counts[index] as number;
    }
    return count;
  }
}

interface PartOptions {
  readonly name: string;
  readonly labels: Labels;
  readonly read: () => number | undefined;
  /** Default: the current time. */
  readonly timestampMs?: (nowMs: number) => number;
}

/** A series whose text is built on first use and cached. */
export class Part implements SampleSeries {
  readonly name: string;
  readonly labels: Labels;
  readonly value: () => number | undefined;
  readonly timestampMs: (nowMs: number) => number;
  /** The added labels of the cached text. */
  #added: AddedLabels | undefined;
  #begin = "";

  constructor({ name, labels, read, timestampMs = (nowMs) => nowMs }: PartOptions) {
    this.name = name;
    this.labels = labels;
    this.value = read;
    this.timestampMs = timestampMs;
  }

  begin(added: AddedLabels): string {
    if (added !== this.#added) {
      this.#added = added;
      // `join` makes a flat string; a template would make a rope that is walked on
      // each use.
      this.#begin = [this.name, "{", added.write(this.labels), "} "].join("");
    }
    return this.#begin;
  }
}

function withLabel(labels: Labels, name: string, value: string): Labels {
  const pairs: [string, string][] = [[name, value]];
  for (let index = 0; index < labels.length; index += 2) {
    pairs.push([labels[index] as string, labels[index + 1] as string]);
  }
  return toLabels(pairs);
}

type SeriesOf<Declared extends Declaration> = {
  counter: CounterSeries;
  gauge: GaugeSeries;
  histogram: HistogramSeries;
}[Declared["kind"]];

/** A value for each declared label. */
type ValuesOf<Declared extends Declaration> = Values<Declared["labels"]>;

type Values<Names extends readonly string[]> = { [Index in keyof Names]: string };

export type AnySeries = CounterSeries | GaugeSeries | HistogramSeries;

/** The owner of series, with the labels that all of them have, in the order of declaration. */
export interface Owner {
  /** Undefined for the node itself. */
  readonly organizationId: string | undefined;
  readonly labels: readonly (readonly [name: string, value: string])[];
}

/** A shared limit on the number of samples of several metrics. */
export interface SeriesBudget {
  /** Reserves samples; false when that would exceed the limit. */
  take(samples: number): boolean;
  giveBack(samples: number): void;
}

interface MetricBounds {
  /** Series per group, counted as label sets: a histogram counts once. */
  readonly maxSeries: number;
  /** Default: only `maxSeries` applies. */
  readonly budget?: SeriesBudget;
  /**
   * The listed values of labels; others count as `other`. Default: those of the
   * platform's labels.
   */
  readonly listed?: { readonly [label: string]: LabelDeclaration };
  /** Called for every dropped event. */
  readonly onDropped: (owner: Owner) => void;
}

export const KINDS = { counter: CounterSeries, gauge: GaugeSeries, histogram: HistogramSeries };

/** The series of one metric in one organization, by the names that Prometheus sees. */
export interface Group {
  /** Number of label sets. */
  readonly size: number;
  /** Arrays only grow; when a series ends they are replaced. */
  readonly samples: ReadonlyMap<string, readonly SampleSeries[]>;
}

export class Metric<Declared extends Declaration = Declaration> {
  readonly declaration: Declared;
  readonly #options: MetricBounds;
  readonly #groups = new Map<string | undefined, MutableGroup>();
  /** By label: the values that are counted by themselves; undefined for names. */
  readonly #listed: readonly (ReadonlySet<string> | undefined)[];

  constructor(declaration: Declared, options: MetricBounds) {
    this.declaration = declaration;
    this.#options = options;
    const { listed = LABELS }: Pick<MetricBounds, "listed"> = options;
    this.#listed = declaration.labels.map((name) => {
      const values = Object.hasOwn(listed, name) ? listed[name]?.values : undefined;
      return values && new Set(values);
    });
  }

  /** All groups; the node's own has the key undefined. */
  get groups(): ReadonlyMap<string | undefined, Group> {
    return this.#groups;
  }

  /** Returns the part of the metric that belongs to one owner. */
  of(owner: Owner): Owned<Declared> {
    let group = this.#groups.get(owner.organizationId);
    if (group === undefined) {
      group = new MutableGroup();
      this.#groups.set(owner.organizationId, group);
    }
    const { maxSeries, budget, onDropped } = this.#options;
    const options = { maxSeries, budget, onDropped, group, values: this.#listed };
    return new Owned(this.declaration, owner, options);
  }
}

interface Branch extends Map<string, Branch | AnySeries | undefined> {}

interface OwnedOptions extends Pick<MetricBounds, "maxSeries" | "onDropped"> {
  readonly budget: SeriesBudget | undefined;
  readonly group: MutableGroup;
  /** By label: the values that are counted by themselves; undefined for names. */
  readonly values: readonly (ReadonlySet<string> | undefined)[];
}

/** One owner's part of a metric. */
export class Owned<Declared extends Declaration = Declaration> {
  readonly #declaration: Declared;
  readonly #owner: Owner;
  readonly #options: OwnedOptions;
  readonly #root: Branch = new Map();
  readonly #series: AnySeries[] = [];
  /** A cache of the last lookup, which is often repeated. */
  #last: { readonly values: readonly string[]; readonly series: AnySeries } | undefined;
  #ended = false;

  constructor(declaration: Declared, owner: Owner, options: OwnedOptions) {
    this.#declaration = declaration;
    this.#owner = owner;
    this.#options = options;
  }

  /** All of its series. */
  get series(): readonly AnySeries[] {
    return this.#series;
  }

  /**
   * Returns the series with these label values, creating it if needed;
   * undefined when there are too many series.
   */
  with(...values: ValuesOf<Declared>): SeriesOf<Declared> | undefined {
    if (this.#last && isSame(this.#last.values, values)) {
      return this.#last.series as SeriesOf<Declared>;
    }
    const series = this.#find(values);
    this.#last = series && { values, series };
    return series;
  }

  #find(values: readonly string[]): SeriesOf<Declared> | undefined {
    let branch: Branch = this.#root;
    const last = values.length - 1;
    for (let index = 0; index < last; index += 1) {
      const value = values[index] as string;
      let next = branch.get(value) as Branch | undefined;
      if (next === undefined) {
        next = new Map();
        branch.set(value, next);
      }
      branch = next;
    }
    const found = branch.get(values[last] ?? "") as SeriesOf<Declared> | undefined;
    return found ?? this.#create(values, branch);
  }

  /** Ends all series at once; later events are ignored. */
  end(): void {
    this.#ended = true;
    const { group, budget } = this.#options;
    budget?.giveBack(this.#series.reduce((sum, { parts }) => sum + parts.length, 0));
    group.remove(this.#series);
    this.#series.length = 0;
    this.#last = undefined;
    this.#root.clear();
  }

  #create(values: readonly string[], branch: Branch): SeriesOf<Declared> | undefined {
    const { values: listed, group, maxSeries, budget, onDropped } = this.#options;
    const counted = values.map((value, index) =>
      listed[index]?.has(value) === false ? "other" : value,
    );
    if (counted.some((value, index) => value !== values[index])) {
      this.#forget(values, branch);
      return this.#find(counted);
    }
    if (this.#ended) {
      return undefined;
    }
    if (group.size >= maxSeries || budget?.take(samplesOf(this.#declaration)) === false) {
      this.#forget(values, branch);
      onDropped(this.#owner);
      return undefined;
    }
    const { labels } = this.#declaration;
    const pairs = labels.map((name, index) => [name, counted[index] ?? ""] as const);
    const kind = KINDS[this.#declaration.kind];
    const series = new kind(this.#declaration, toLabels([...this.#owner.labels, ...pairs]));
    group.add(series);
    this.#series.push(series);
    branch.set(values.at(-1) ?? "", series);
    return series as SeriesOf<Declared>;
  }

  /** Removes the empty branches of a lookup that created no series. */
  #forget(values: readonly string[], branch: Branch): void {
    if (branch.size === 0 && values.length > 1) {
      let parent = this.#root;
      for (const value of values.slice(0, -2)) {
        parent = parent.get(value) as Branch;
      }
      parent.delete(values.at(-2) as string);
    }
  }
}

function isSame(some: readonly string[], others: readonly string[]): boolean {
  for (let index = 0; index < some.length; index += 1) {
    if (some[index] !== others[index]) {
      return false;
    }
  }
  return true;
}

/** The number of samples per series: a histogram has its buckets, +Inf, its sum and its count. */
export function samplesOf({ kind, buckets = [] }: Pick<Declaration, "kind" | "buckets">): number {
  return kind === "histogram" ? buckets.length + 3 : 1;
}

export class MutableGroup implements Group {
  size = 0;
  readonly samples = new Map<string, SampleSeries[]>();

  add(series: AnySeries): void {
    this.size += 1;
    for (const part of series.parts) {
      const list = this.samples.get(part.name);
      if (list === undefined) {
        this.samples.set(part.name, [part]);
      } else {
        list.push(part);
      }
    }
  }

  /**
   * Replaces the arrays. A reader in the middle of an old one goes on with it
   * and sees that the series have ended.
   */
  remove(ending: readonly AnySeries[]): void {
    for (const series of ending) {
      series.ended = true;
    }
    this.size -= ending.length;
    const gone = new Set(ending.flatMap(({ parts }) => parts));
    for (const [name, list] of this.samples) {
      const left = list.filter((part) => !gone.has(part));
      if (left.length === 0) {
        this.samples.delete(name);
      } else if (left.length < list.length) {
        this.samples.set(name, left);
      }
    }
  }
}
