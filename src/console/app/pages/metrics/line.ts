/** A line of a chart, and its numbers from those of an answer. */
import type { MetricSeriesJson } from "../../../../../gen/tessera/v1/metrics_pb.js";

export interface Line {
  readonly name: string;
  /** A variable of the style sheet. */
  readonly colour: string;
  /** One for each time; null where nothing was measured. */
  readonly values: readonly (number | null)[];
}

/** The numbers of a series, which JSON writes as text where they are none: null where nothing is known. */
export const numbersOf = (values: MetricSeriesJson["values"] = []): Line["values"] =>
  values.map((value) => (Number.isFinite(Number(value)) ? Number(value) : null));
