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
  /** One for each time; null where nothing was measured. */
  readonly values: readonly (number | null)[];
}

/** The numbers of a series, which JSON writes as text where they are none: null where nothing is known. */
export const numbersOf = (values: MetricSeriesJson["values"] = []): Line["values"] =>
  values.map((value) => (Number.isFinite(Number(value)) ? Number(value) : null));

/** How much there was, of a rate per second in steps of `stepS` seconds; what is not known counts nothing. */
export const totalOf = (values: Line["values"], stepS: number): number =>
  Math.round(values.reduce<number>((sum, value) => sum + (value ?? 0) * stepS, 0));

/** The last value that is known, as text. */
export function latest(values: Line["values"], format: Format): string {
  const value = values.findLast((one) => one !== null);
  return value === undefined || value === null ? "none" : format(value);
}

/** The median of the values: one second that was slow does not change it. */
export function usual(values: Line["values"], format: Format): string {
  const known = values.filter((value) => value !== null).sort((one, other) => one - other);
  const middle = known[Math.floor(known.length / 2)];
  return middle === undefined ? "none" : format(middle);
}

/** The highest value, as text. */
export function highest(values: Line["values"], format: Format): string {
  const most = values.reduce((one, other) => Math.max(one ?? other ?? 0, other ?? one ?? 0), null);
  return most === null ? "none" : format(most);
}

/** The median step, and the worst one: percentiles of steps have no average. */
export const percentileNumbers = (
  p50: Line["values"],
  p95: Line["values"],
  format: Format,
): readonly ChartNumber[] => [
  [usual(p50, format), "usual p50"],
  [usual(p95, format), `usual p95, peak ${highest(p95, format)}`, "--middle"],
];

/** A line that lies exactly on earlier ones is dashed, so that each is seen; no bar lies on another. */
export const toldApart = (lines: readonly Line[], isDaily = false): readonly Line[] =>
  lines.map((line, index) => {
    if (isDaily) {
      return line;
    }
    const below = lines.slice(0, index).filter(({ values }) => isSame(values, line.values));
    return { ...line, dashes: Math.max(line.dashes ?? 0, below.length) };
  });

const isSame = (one: Line["values"], other: Line["values"]): boolean =>
  one.length === other.length && one.every((value, index) => value === other[index]);
