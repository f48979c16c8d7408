/** Charts of what was measured, in one grid. */
import { useMemo } from "react";
import type {
  MetricSeriesJson,
  QueryMetricsResponseJson,
} from "../../../../../gen/tessera/v1/metrics_pb.js";
import { type Line, numbersOf, wholeOf, wholeText } from "../../ui/line.ts";
import { Chart } from "./chart.tsx";
import { isDrawn, type Plotted } from "./plot.ts";
import type { Shown } from "./shown.ts";

interface ChartsProps extends Pick<Plotted, "marks" | "onZoom" | "heightPx"> {
  readonly charts: readonly Shown[];
  readonly measured: QueryMetricsResponseJson;
  /** The index of the first time that they show. */
  readonly first?: number;
  /** The text if no chart has a line. With it, charts without a line are left out. Default: all are shown. */
  readonly nothing?: string;
}

export function Charts({ charts, measured, first = 0, nothing, ...rest }: ChartsProps) {
  const all = useMemo(() => {
    const { times: texts = [], series = [], step = "0s" } = measured;
    const times = texts.slice(first).map(Number);
    const sinceS = Number(texts[firstIn(measured)] ?? 0);
    const all = charts.map(({ lines: named, numbers, empty, isPercentiles, ...chart }) => {
      const lines = named.map(([name, statistic, label, colour, dashes = 0]): Line => {
        const found = seriesOf(series, name, statistic);
        const values = found ? numbersOf(found.values) : texts.map(() => null);
        const line = { name: label, colour, dashes, values: values.slice(first) };
        const whole = found && wholeOf(found);
        return isPercentiles
          ? { ...line, whole, summary: wholeText({ ...line, whole }, chart.format) }
          : line;
      });
      const shown = numbers(lines, { times, stepS: Number.parseFloat(step) });
      return { ...chart, times, lines, sinceS, numbers: shown, empty, zero: empty };
    });
    // What says that nothing happened is read last.
    return all.toSorted(
      ({ lines: one }, { lines: other }) => Number(isDrawn(other)) - Number(isDrawn(one)),
    );
  }, [charts, measured, first]);
  const drawn = nothing === undefined ? all : all.filter(({ lines }) => isDrawn(lines));
  if (drawn.length === 0) {
    return <p className="secondary">{nothing}</p>;
  }
  return (
    <div className="charts">
      {drawn.map((chart) => (
        <Chart key={chart.title} {...chart} {...rest} />
      ))}
    </div>
  );
}

/** The first point at which anything was measured: charts that begin with it have no empty beginning. */
export function firstIn({ series = [] }: QueryMetricsResponseJson): number {
  const all = series.map(({ values }) => numbersOf(values));
  const points = Math.max(0, ...all.map((values) => values.length));
  const firsts = all.map((values) => values.findIndex((value) => value !== null));
  return Math.min(points, ...firsts.filter((at) => at >= 0));
}

const seriesOf = (
  all: readonly MetricSeriesJson[],
  name: string,
  statistic: string,
): MetricSeriesJson | undefined =>
  all.find(
    (one) => one.name === name && !one.custom && (!statistic || one.statistic === statistic),
  );
