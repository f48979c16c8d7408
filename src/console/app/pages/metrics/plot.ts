/** How uPlot draws the lines of a chart. */
import UPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Format } from "../../ui/quantity.ts";
import type { Line } from "./line.ts";

/** The height of a chart without its legend. */
export const HEIGHT_PX = 180;

/** Steps of an axis of bytes: from one byte to a pebibyte. */
const BINARY_STEPS = Array.from({ length: 51 }, (_, power) => 2 ** power);

/** What a chart draws. */
export interface Plotted {
  /** Seconds since 1970. */
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  /** Its axis has steps of powers of two, as sizes in bytes have. */
  readonly binary?: boolean | undefined;
  /** Writes a value with its unit. */
  readonly format: Format;
}

/** Draws into an element, as wide as that is. */
export function plotIn(element: HTMLElement, plotted: Plotted): UPlot {
  return new UPlot(optionsOf(plotted, element.clientWidth), dataOf(plotted), element);
}

export const shown = (value: number | null | undefined, format: Format): string =>
  value === null || value === undefined ? "none" : format(value);

/** What the legend shows while nothing is pointed at. */
const latestOf = (values: UPlot.AlignedData[number] | undefined): number | null | undefined =>
  Array.from(values ?? []).findLast((value) => value !== null);

const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const minute = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  hourCycle: "h23",
});
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** The time of day, and the day at midnight. */
function tickText(at: number): string {
  const date = new Date(at * 1_000);
  return date.getHours() === 0 && date.getMinutes() === 0 ? day.format(date) : minute.format(date);
}

export const dataOf = ({ times, lines }: Pick<Plotted, "times" | "lines">): UPlot.AlignedData => [
  [...times],
  ...lines.map(({ values }) => [...values]),
];

/** From zero, with room above, and below where a gauge is negative. */
function rangeOf(min: number, max: number): [number, number] {
  const low = min < 0 ? min * 1.1 : 0;
  return [low, max > 0 ? max * 1.1 : low < 0 ? 0 : 1];
}

/** The points between two gaps, through which no line goes. */
const alone: UPlot.Series.Points.Filter = (plot, series) => {
  const values = plot.data[series] ?? [];
  const isKnown = (index: number) => typeof values[index] === "number";
  return Array.from(values.keys()).filter(
    (index) => isKnown(index) && !isKnown(index - 1) && !isKnown(index + 1),
  );
};

/** Looked up with each drawing, because the person may choose another theme. */
const colour = (name: string) => () =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function optionsOf({ lines, format, binary = false }: Plotted, width: number): UPlot.Options {
  const axis = { stroke: colour("--text-secondary"), grid: { stroke: colour("--line"), width: 1 } };
  return {
    width,
    height: HEIGHT_PX,
    cursor: { points: { size: 6 }, drag: { x: false, y: false } },
    scales: { y: { range: (_plot, min, max) => rangeOf(min, max) } },
    axes: [
      {
        ...axis,
        size: 32,
        ticks: { show: false },
        values: (_plot, splits) => splits.map(tickText),
      },
      {
        ...axis,
        size: 64,
        ticks: { show: false },
        ...(binary && { incrs: BINARY_STEPS }),
        values: (_plot, splits) => splits.map((value) => format(value)),
      },
    ],
    series: [
      { value: (_plot, at) => (at ? moment.format(at * 1_000) : "latest") },
      ...lines.map(({ name, colour: variable }) => ({
        label: name,
        stroke: colour(variable),
        width: 1.5,
        points: { show: false, size: 3, filter: alone },
        value: (plot: UPlot, value: number | null, series: number, index: number | null) =>
          shown(index === null ? latestOf(plot.data[series]) : value, format),
      })),
    ],
  };
}
