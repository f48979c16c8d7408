/** Series: counters, gauges and histograms with one set of labels each. */

import type { Declaration } from "./declarations.ts";
import type { AddedLabels } from "./external-labels.ts";
import { type Labels, toLabels } from "./labels.ts";
import { formatNumber } from "./number.ts";

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
