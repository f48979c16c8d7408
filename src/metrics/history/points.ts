/** Points: the values of one series, summed up step by step from intervals. */
import { type HistorySeries, PERCENTILES } from "./history.ts";
import { type Measurement, toSixDigits } from "./interval.ts";
import { percentile } from "./percentile.ts";
import type { Range } from "./range.ts";

type Described = Pick<HistorySeries, "name" | "custom" | "labels">;

/** Kind and buckets of the metric. */
interface PointsShape {
  readonly kind: "counter" | "gauge" | "histogram";
  readonly buckets?: readonly number[];
}

export class Points {
  readonly #shape: PointsShape;
  readonly #range: Range;
  readonly #sums: Float64Array;
  /** Of gauges: how many values a point has. */
  readonly #counts: Uint32Array;
  readonly #buckets: (number[] | undefined)[] = [];

  constructor(shape: PointsShape, range: Range) {
    this.#shape = shape;
    this.#range = range;
    this.#sums = new Float64Array(range.points).fill(Number.NaN);
    this.#counts = new Uint32Array(range.points);
  }

  /** Something was measured then, if only that nothing happened. */
  known(point: number): void {
    if (this.#shape.kind === "counter" && Number.isNaN(this.#sums[point])) {
      this.#sums[point] = 0;
    }
  }

  add(point: number, value: Measurement): void {
    if (this.#shape.kind === "histogram") {
      if (typeof value !== "number") {
        const before = this.#buckets[point];
        this.#buckets[point] = value.map((count, index) => count + (before?.[index] ?? 0));
      }
    } else if (typeof value === "number") {
      const before = this.#sums[point] as number;
      this.#sums[point] = Number.isNaN(before) ? value : before + value;
      this.#counts[point] = (this.#counts[point] as number) + 1;
    }
  }

  /** The series that are answered: one, or three percentiles. */
  series(described: Described): HistorySeries[] {
    const { kind, buckets = [] } = this.#shape;
    const { points, stepMs } = this.#range;
    if (kind === "histogram") {
      return PERCENTILES.map(([statistic, fraction]) => ({
        ...described,
        statistic,
        values: Array.from({ length: points }, (_, point) =>
          toSixDigits(percentile(fraction, this.#buckets[point] ?? [], buckets)),
        ),
      }));
    }
    const isCounter = kind === "counter";
    const values = Array.from(this.#sums, (sum, point) =>
      toSixDigits(isCounter ? (sum / stepMs) * 1_000 : sum / (this.#counts[point] as number)),
    );
    return [{ ...described, statistic: isCounter ? "rate" : "average", values }];
  }
}
