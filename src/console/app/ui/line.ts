/** A line of a chart, and its numbers from those of an answer. */
import type { MetricSeriesJson } from "../../../../gen/tessera/v1/metrics_pb.js";
import type { Format } from "./quantity.ts";

/** A number that a chart is looked at for, what it is, and the colour of its line. */
export type ChartNumber = readonly [value: string, words: string, colour?: string];

export interface Line {
  readonly name: string;
  /** A variable of the style sheet. */
  readonly colour: string;
  /** In which of several ways it is dashed; 0 is a solid line. */
  readonly dashes?: number;
  /** What the legend says of it while nothing is pointed at. Default: its latest value. */
  readonly summary?: string;
  /** The statistic of the whole range, of a percentile or an average; undefined where nothing is known. */
  readonly whole?: number | undefined;
  /** The name of an earlier line with the same values, on which it lies. */
  readonly sameAs?: string | undefined;
  /** One for each time; null where nothing was measured. */
  readonly values: readonly (number | null)[];
}

/** The numbers of a series, which JSON writes as text where they are none: null where nothing is known. */
export const numbersOf = (values: MetricSeriesJson["values"] = []): Line["values"] =>
  values.map((value) => (Number.isFinite(Number(value)) ? Number(value) : null));

/** How much there was, of a rate per second in steps of `stepS` seconds; what is not known counts nothing. */
export const totalOf = (values: Line["values"] = [], stepS = 0): number =>
  Math.round(values.reduce<number>((sum, value) => sum + (value ?? 0) * stepS, 0));

/** A value that is older than this is not that of now. */
const MAX_NOW_AGE_MS = 60_000;

/** The last value that is known as text, and whether it is that of now. */
export function latest(
  values: Line["values"],
  times: readonly number[],
  format: Format,
): readonly [value: string, when: "now" | "last"] {
  const at = values.findLastIndex((value) => value !== null);
  const isNow = (times[at] ?? 0) * 1_000 > Date.now() - MAX_NOW_AGE_MS;
  const value = values[at];
  return [value === undefined || value === null ? "none" : format(value), isNow ? "now" : "last"];
}

/** Percentiles of the whole range: those of steps have no average. */
export const percentileNumbers = (
  p50: Line | undefined,
  p95: Line | undefined,
  format: Format,
): readonly ChartNumber[] => [
  [wholeText(p50, format), "p50"],
  [wholeText(p95, format), "p95", "--middle"],
];

/** The statistic of the whole range as text. */
export const wholeText = (line: Line | undefined, format: Format): string =>
  line?.whole === undefined ? "none" : format(line.whole);

/** The number of a series over the whole range; undefined where nothing is known. */
export function wholeOf({ whole }: Pick<MetricSeriesJson, "whole">): number | undefined {
  const value = Number(whole ?? 0);
  return Number.isFinite(value) ? value : undefined;
}

/** A line that lies on others for this part of its length can hardly be seen. */
const MAX_COVERED_SHARE = 2 / 3;

/** Nearer values than this part of the highest one are at the same place of a chart. */
const MAX_NEAR_SHARE = 0.01;

/** The ways of dashing a line. */
const MAX_DASHES = 3;

/**
 * A line that lies on earlier ones for two thirds of its length or more is dashed, each in another way,
 * so that all are seen; of one that has the same values throughout it says so. No bar lies on another.
 */
export function toldApart(lines: readonly Line[], isDaily = false): readonly Line[] {
  if (isDaily) {
    return lines;
  }
  const near =
    MAX_NEAR_SHARE * lines.reduce((most, { values }) => Math.max(most, highest(values)), 0);
  return lines.map((line, index) => {
    const earlier = lines.slice(0, index);
    const below = earlier.filter(({ values }) => covers(values, line.values, near));
    const sameAs = earlier.find(({ values }) => isSame(values, line.values))?.name;
    const dashes = below.length === 0 ? 0 : 1 + ((below.length - 1) % MAX_DASHES);
    return { ...line, dashes: Math.max(line.dashes ?? 0, dashes), sameAs };
  });
}

const highest = (values: Line["values"]): number =>
  values.reduce<number>((most, value) => Math.max(most, Math.abs(value ?? 0)), 0);

/** Along the axis, where nothing happens, lines may lie on one another. */
function covers(one: Line["values"], other: Line["values"], near: number): boolean {
  let [points, covered] = [0, 0];
  for (const [at, value] of other.entries()) {
    const below = one[at] ?? null;
    if (value !== null && (value !== 0 || below !== 0)) {
      points += 1;
      covered += below !== null && Math.abs(value - below) <= near ? 1 : 0;
    }
  }
  return covered > 0 && covered >= points * MAX_COVERED_SHARE;
}

const isSame = (one: Line["values"], other: Line["values"]): boolean =>
  one.length === other.length && one.every((value, index) => value === other[index]);
