/** How uPlot draws the lines of a chart. */
import UPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Line } from "../../ui/line.ts";
import type { Format } from "../../ui/quantity.ts";
import { type TimeBounds, tickText } from "../../ui/time-range.ts";

/** The height of a chart without its legend. */
export const HEIGHT_PX = 180;

/** Steps of an axis of bytes: from one byte to a pebibyte. */
const BINARY_STEPS = Array.from({ length: 51 }, (_, power) => 2 ** power);

/** Steps of an axis of things that are counted. */
const WHOLE_STEPS = Array.from({ length: 12 }, (_, power) =>
  [1, 2, 5].map((digit) => digit * 10 ** power),
).flat();

/** Less than this part of the width without data is not told. */
const MIN_EMPTY_SHARE = 0.15;

/** What a chart draws. */
export interface Plotted {
  /** Seconds since 1970. */
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  /** Its axis has steps of powers of two, as sizes in bytes have. */
  readonly binary?: boolean | undefined;
  /** Its axis counts things, of which there is no half. */
  readonly isWhole?: boolean | undefined;
  /** Writes a value with its unit. */
  readonly format: Format;
  /** When which revision was deployed. */
  readonly marks?: readonly Mark[];
  /** Called with a range that was drawn over the chart. */
  readonly onZoom?: ((range: TimeBounds) => void) | undefined;
}

/** A moment on a chart, with its name. */
export interface Mark {
  readonly timeMs: number;
  readonly name: string;
}

/** All charts of a page have one cursor: what happened here, and elsewhere at the same time. */
const CURSOR = "charts";

/** A range is not drawn over a chart by a hand that trembles. */
const DRAWN_PX = 8;

/** Draws into an element, as wide as that is. */
export function plotIn(element: HTMLElement, plotted: Plotted): UPlot {
  return new UPlot(optionsOf(plotted, element.clientWidth), dataOf(plotted), element);
}

export const shown = (value: number | null | undefined, format: Format): string =>
  value === null || value === undefined ? "none" : format(value);

/** What the legend shows while nothing is pointed at. */
const latestOf = (values: UPlot.AlignedData[number] | undefined): number | null | undefined =>
  Array.from(values ?? []).findLast((value) => value !== null);

const moment = new Intl.DateTimeFormat(undefined, {
  month: "short",
  day: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});

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

/** Draws the marks behind the lines: a dashed line from top to bottom, with its name where there is room. */
function drawMarks(plot: UPlot, marks: readonly Mark[]): void {
  const { ctx, bbox } = plot;
  const { min = 0, max = 0 } = plot.scales.x ?? {};
  ctx.save();
  ctx.strokeStyle = colour("--line-strong")();
  ctx.fillStyle = colour("--text-secondary")();
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textBaseline = "top";
  ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  ctx.lineWidth = devicePixelRatio;
  let freeFrom = Number.NEGATIVE_INFINITY;
  for (const { timeMs, name } of marks) {
    if (timeMs / 1_000 < min || timeMs / 1_000 > max) {
      continue;
    }
    const at = Math.round(plot.valToPos(timeMs / 1_000, "x", true));
    ctx.beginPath();
    ctx.moveTo(at, bbox.top);
    ctx.lineTo(at, bbox.top + bbox.height);
    ctx.stroke();
    const width = ctx.measureText(name).width + 8 * devicePixelRatio;
    const isLast = at + width > bbox.left + bbox.width;
    const from = isLast ? at - width : at;
    if (from >= freeFrom) {
      ctx.fillText(name, from + 4 * devicePixelRatio, bbox.top);
      freeFrom = from + width;
    }
  }
  ctx.restore();
}

/** Shades the time before anything was measured, which is no time in which nothing happened. */
function drawNothing(plot: UPlot): void {
  const { ctx, bbox, data } = plot;
  const [times, ...lines] = data;
  const first = times.findIndex((_, index) => lines.some((values) => values[index] != null));
  const width = first < 0 ? 0 : plot.valToPos(times[first] ?? 0, "x", true) - bbox.left;
  if (width < bbox.width * MIN_EMPTY_SHARE) {
    return;
  }
  ctx.save();
  ctx.globalAlpha = 0.5;
  ctx.fillStyle = colour("--hover")();
  ctx.fillRect(bbox.left, bbox.top, width, bbox.height);
  ctx.globalAlpha = 1;
  ctx.fillStyle = colour("--text-secondary")();
  ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textAlign = "center";
  ctx.fillText("no data", bbox.left + width / 2, bbox.top + bbox.height / 2);
  ctx.restore();
}

function optionsOf(plotted: Plotted, width: number): UPlot.Options {
  const { lines, format, binary = false, isWhole = false, marks = [], onZoom } = plotted;
  const axis = { stroke: colour("--text-secondary"), grid: { stroke: colour("--line"), width: 1 } };
  return {
    width,
    height: HEIGHT_PX,
    cursor: {
      points: { size: 6 },
      drag: { x: onZoom !== undefined, y: false, setScale: false, dist: DRAWN_PX },
      // Each chart takes what is drawn over it alone.
      sync: { key: CURSOR, filters: { pub: (type) => type !== "mousedown" && type !== "mouseup" } },
    },
    hooks: {
      drawClear: [drawNothing, (plot) => drawMarks(plot, marks)],
      // The legend has a time while one is pointed at.
      setCursor: [({ root, cursor }) => root.classList.toggle("is-pointed", cursor.idx != null)],
      setSelect: [
        (plot) => {
          const { left, width: drawn } = plot.select;
          if (drawn >= DRAWN_PX) {
            const timeAt = (px: number) => Math.round(plot.posToVal(px, "x") * 1_000);
            onZoom?.({ fromMs: timeAt(left), toMs: timeAt(left + drawn) });
            plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          }
        },
      ],
    },
    legend: {
      markers: {
        width: 0,
        fill: (_plot, series) => colour(lines[series - 1]?.colour ?? "--text")(),
      },
    },
    scales: { y: { range: (_plot, min, max) => rangeOf(min, max) } },
    axes: [
      {
        ...axis,
        size: 32,
        ticks: { show: false },
        values: (_plot, splits) => splits.map((at) => tickText(at * 1_000)),
      },
      {
        ...axis,
        size: 64,
        ticks: { show: false },
        ...(binary && { incrs: BINARY_STEPS }),
        ...(isWhole && { incrs: WHOLE_STEPS }),
        values: (_plot, splits) => splits.map((value) => format(value)),
      },
    ],
    series: [
      { label: "", value: (_plot, at) => (at ? moment.format(at * 1_000) : "") },
      ...lines.map(({ name, summary, colour: variable }) => ({
        label: name,
        stroke: colour(variable),
        width: 1.5,
        points: { show: false, size: 5, filter: alone },
        value: (plot: UPlot, value: number | null, series: number, index: number | null) =>
          index === null
            ? (summary ?? shown(latestOf(plot.data[series]), format))
            : shown(value, format),
      })),
    ],
  };
}
