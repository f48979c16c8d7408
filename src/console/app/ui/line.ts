/** A line of a chart, and its numbers from those of an answer. */
import type { MetricSeriesJson } from "../../../../gen/tessera/v1/metrics_pb.js";
import type { Format } from "./quantity.ts";

export interface Line {
  readonly name: string;
  /** A variable of the style sheet. */
  readonly colour: string;
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

/** The highest value, as text. */
export function highest(values: Line["values"], format: Format): string {
  const most = values.reduce((one, other) => Math.max(one ?? other ?? 0, other ?? one ?? 0), null);
  return most === null ? "none" : format(most);
}
