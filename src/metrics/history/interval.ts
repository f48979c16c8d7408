/**
 * An interval: what was measured between two moments, as increases of counters
 * and histograms and as averages of gauges. Intervals are summed: those that
 * follow each other, for a coarser resolution, and those of deployments, for
 * their organization. Increases rather than totals are kept, so that the restart
 * of a node loses nothing and sums over nodes need no care.
 */
import type { CustomDeclaration } from "../custom-metric.ts";
import { MEASURES, type Measure, type MeasureName } from "./measures.ts";
import { TaskTally } from "./task-tally.ts";

/** A counter's increase, a gauge, or a histogram's increase of each bucket. */
export type Measurement = number | readonly number[];

export interface Interval {
  /** How much of the interval was measured. */
  readonly coveredMs: number;
  readonly platform: ReadonlyMap<MeasureName, Measurement>;
  readonly custom: readonly CustomValue[];
  /** Series that there was no room for, by the names of the service's metrics. */
  readonly leftOut?: LeftOut;
  /** Of an organization: its tasks. */
  readonly tasks?: TaskTally;
}

/** One series of a service's own metric, or of what a library or a server in its workers exposes. */
export interface CustomValue {
  readonly metric: CustomShape;
  /** Values of the labels, in the order of the metric. */
  readonly labels: readonly string[];
  readonly value: Measurement;
}

/** A metric of a service, as far as it tells how to read its values. */
export type CustomShape = Omit<CustomDeclaration, "help">;

/** How many series are left out, by the name of their metric. */
export type LeftOut = ReadonlyMap<string, number>;

/** Raises `into` to the numbers of `more`: the same series may be left out again and again. */
export function raiseLeftOut(into: Map<string, number>, more: LeftOut = new Map()): void {
  for (const [name, series] of more) {
    into.set(name, Math.max(into.get(name) ?? 0, series));
  }
}

/** Series of a service that are kept of a deployment in an interval. */
const MAX_KEPT_CUSTOM_SERIES = 100;

/** Size of what is kept of a service's own metrics in an interval, about. */
const MAX_KEPT_CUSTOM_CHARACTERS = 16_000;

/** Admits series of a service until an interval has as many as are kept. */
export class CustomRoom {
  #series = MAX_KEPT_CUSTOM_SERIES;
  #characters = MAX_KEPT_CUSTOM_CHARACTERS;
  /** Metrics whose series are kept: each is described once. */
  readonly #shapes = new Set<string>();

  take({ metric, labels, value }: CustomValue): boolean {
    const numbers = typeof value === "number" ? 1 : value.length;
    const shape = shapeKey(metric);
    const described = this.#shapes.has(shape) ? 0 : shape.length;
    // A number has about eight.
    const characters = labels.join("").length + numbers * 8 + described;
    if (this.#series === 0 || characters > this.#characters) {
      return false;
    }
    this.#shapes.add(shape);
    this.#series -= 1;
    this.#characters -= characters;
    return true;
  }
}

/** Whether nothing happened, and no gauge shows anything. */
export function isQuiet({ platform, custom }: Interval): boolean {
  return [...platform.values()].every(isZero) && custom.every(({ value }) => isZero(value));
}

export function isZero(value: Measurement): boolean {
  return typeof value === "number" ? value === 0 : value.every((each) => each === 0);
}

/** A number to six digits: more of an average or a rate would be noise, and half of an answer. */
export function toSixDigits(value: number): number {
  return Number.isInteger(value) && Math.abs(value) < 1e6 ? value : Number(value.toPrecision(6));
}

/** Adds histograms bucket by bucket, and numbers. Of another shape, `one` stays as it is. */
export function plus(one: Measurement, other: Measurement): Measurement {
  if (typeof one === "number" || typeof other === "number") {
    return typeof one === "number" && typeof other === "number" ? one + other : one;
  }
  return one.length === other.length
    ? one.map((each, index) => each + (other[index] as number))
    : one;
}

/** The sum of what deployments did in the same interval; their own metrics are left out. */
export function together(one: Interval, other: Interval): Interval {
  const platform = new Map(one.platform);
  for (const [name, value] of other.platform) {
    const before = platform.get(name);
    const { over }: Measure = MEASURES[name];
    const isMax = over === "max" && typeof before === "number" && typeof value === "number";
    const sum = before === undefined ? value : plus(before, value);
    platform.set(name, isMax ? Math.max(before, value) : sum);
  }
  return { coveredMs: Math.max(one.coveredMs, other.coveredMs), platform, custom: [] };
}

/** Intervals that follow each other, as one. */
export class IntervalSum {
  #coveredMs = 0;
  readonly #platform = new Map<MeasureName, Measurement>();
  readonly #custom = new Map<string, Summed>();
  readonly #room = new CustomRoom();
  readonly #leftOut = new Map<string, number>();
  readonly #tasks = new TaskTally();

  add({ coveredMs, platform, custom, leftOut, tasks }: Interval): void {
    this.#coveredMs += coveredMs;
    if (tasks !== undefined) {
      this.#tasks.addAll(tasks);
    }
    for (const [name, value] of platform) {
      const isGauge = MEASURES[name].kind === "gauge";
      const before = this.#platform.get(name);
      const weighted = isGauge && typeof value === "number" ? value * coveredMs : value;
      this.#platform.set(name, before === undefined ? weighted : plus(before, weighted));
    }
    const refused = new Map(leftOut);
    for (const one of custom) {
      if (!this.#addCustom(one, coveredMs)) {
        refused.set(one.metric.name, (refused.get(one.metric.name) ?? 0) + 1);
      }
    }
    raiseLeftOut(this.#leftOut, refused);
  }

  get interval(): Interval {
    const platform = new Map<MeasureName, Measurement>();
    for (const [name, value] of this.#platform) {
      const isGauge = MEASURES[name].kind === "gauge" && typeof value === "number";
      platform.set(name, isGauge ? value / this.#coveredMs : value);
    }
    const custom = [...this.#custom.values()].map(({ metric, labels, value, weight }) => {
      const isGauge = metric.kind === "gauge" && typeof value === "number";
      return { metric, labels, value: isGauge ? value / weight : value };
    });
    const leftOut = new Map(this.#leftOut);
    return { coveredMs: this.#coveredMs, platform, custom, leftOut, tasks: this.#tasks };
  }

  /** Whether there was room for it. */
  #addCustom({ metric, labels, value }: CustomValue, coveredMs: number): boolean {
    const key = keyOf(metric, labels);
    const weighted =
      metric.kind === "gauge" && typeof value === "number" ? value * coveredMs : value;
    const before = this.#custom.get(key);
    if (before !== undefined) {
      before.value = plus(before.value, weighted);
      before.weight += coveredMs;
    } else if (this.#room.take({ metric, labels, value })) {
      this.#custom.set(key, { metric, labels, value: weighted, weight: coveredMs });
    } else {
      return false;
    }
    return true;
  }
}

interface Summed {
  readonly metric: CustomShape;
  readonly labels: readonly string[];
  value: Measurement;
  /** Of a gauge: how long it was set. */
  weight: number;
}

/** The same for series that continue each other. */
export function keyOf(metric: CustomShape, labels: readonly string[]): string {
  return JSON.stringify([shapeKey(metric), labels]);
}

/** The same for metrics whose values can be added. */
export function shapeKey({ name, kind, labels, buckets, aggregator }: CustomShape): string {
  return JSON.stringify([name, kind, labels, buckets, aggregator]);
}
