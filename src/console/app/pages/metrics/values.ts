/** The numbers of a series, which JSON writes as text where they are none. */
import type { MetricSeriesJson } from "../../../../../gen/tessera/v1/metrics_pb.js";

/** Null where nothing is known. */
export const numbersOf = (values: MetricSeriesJson["values"] = []): readonly (number | null)[] =>
  values.map((value) => (Number.isFinite(Number(value)) ? Number(value) : null));
