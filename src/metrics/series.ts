/** One thing that is counted: a counter, a gauge or a histogram with one set of labels. */
import type { AddedLabels } from "./added.ts";
import type { Declaration } from "./declarations.ts";
import { type Labels, toLabels } from "./labels.ts";
import { formatNumber } from "./number.ts";

/** A series as Prometheus understands it: a name, labels, and the newest sample. */
export interface SampleSeries {
  readonly name: string;
  readonly labels: Labels;
  /** `name{a="1",instance=""} `: what a line begins with, with the labels that are added. */
  begin(added: AddedLabels): string;
  /** NaN is a value like others; `undefined`: there is no sample, or the series has ended. */
  value(): number | undefined;
  /** When the value was true, in milliseconds since 1970. */
  timestampMs(nowMs: number): number;
}

/** What a series of any kind is made of. */
abstract class Series {
  /** What Prometheus sees of it. */
  readonly parts: readonly SampleSeries[];
  /** Its deployment or its worker is gone: nothing shows it any more. */
  ended = false;

  protected constructor(parts: (series: never) => readonly SampleSeries[]) {
    this.parts = parts(this as never);
  }
}

export class CounterSeries extends Series {
  #total = 0;

  constructor({ name }: Declaration, labels: Labels) {
    super((series: CounterSeries) => [
      new Part({ name, labels, read: () => (series.ended ? undefined : series.#total) }),
    ]);
  }

  add(amount = 1): void {
    this.#total += amount;
  }

  /** For what is counted elsewhere; it never goes down. */
  reach(total: number): void {
    this.#total = Math.max(this.#total, total);
  }
}

export class GaugeSeries extends Series {
  #value: number | undefined;
  #setAtMs: number | undefined;

  constructor({ name }: Declaration, labels: Labels) {
    super((series: GaugeSeries) => [
      new Part({
        name,
        labels,
        read: () => (series.ended ? undefined : series.#value),
        timestampMs: (nowMs) => series.#setAtMs ?? nowMs,
      }),
    ]);
  }

  /** A gauge is as old as its last setting; without a time, it is what it is until the next. */
  set(value: number, nowMs?: number): void {
    this.#value = value;
    this.#setAtMs = nowMs;
  }

  /** Nobody knows what it is any more: it is left out until it is set. */
  unset(): void {
    this.#value = undefined;
  }
}

export class HistogramSeries extends Series {
  readonly #bounds: readonly number[];
  /** How many values are in each bucket, not in those below it; the last one is +Inf. */
  readonly #counts: Float64Array;
  #sum = 0;

  constructor({ name, buckets = [] }: Declaration, labels: Labels) {
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

  observe(value: number): void {
    const bounds = this.#bounds;
    let index = 0;
    while (index < bounds.length && value > (bounds[index] as number)) {
      index += 1;
    }
    this.#counts[index] = (this.#counts[index] as number) + 1;
    this.#sum += value;
  }

  /** Adds values that somebody else observed: how many in each bucket alone, +Inf last. */
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

export interface PartOptions {
  readonly name: string;
  readonly labels: Labels;
  readonly read: () => number | undefined;
  /** Default: the value is true now. */
  readonly timestampMs?: (nowMs: number) => number;
}

/** A series of samples; its text is made when it is first asked for, and kept. */
export class Part implements SampleSeries {
  readonly name: string;
  readonly labels: Labels;
  readonly value: () => number | undefined;
  readonly timestampMs: (nowMs: number) => number;
  /** Whose labels were added last, and to what. */
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
      // Joined, it is one piece in memory; a template would be walked through piece by piece each time.
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
