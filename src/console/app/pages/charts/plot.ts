/** How uPlot draws the lines of a chart. */
import UPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { type Line, latest } from "../../ui/line.ts";
import type { Format } from "../../ui/quantity.ts";
import { secondText, type TimeBounds, tickText, utcDayText } from "../../ui/time-range.ts";
import { isFine, ticksBetween } from "./time-ticks.ts";
import { type AxisOptions, axisRange, valueTicks } from "./value-ticks.ts";

/** The height of a chart without its legend, unless it is one of few. */
export const HEIGHT_PX = 180;

/** Less than this part of the width without data is not told. */
const MIN_EMPTY_SHARE = 0.15;

/** What a chart draws. */
export interface Plotted extends Omit<AxisOptions, "heightPx"> {
  /** Seconds since 1970. */
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  /** When measuring began. Default: with the first value of its lines. */
  readonly sinceS?: number | undefined;
  /** Default: `HEIGHT_PX`. */
  readonly heightPx?: number | undefined;
  /** Its times are days of UTC, and each line is a part of a bar per day. */
  readonly isDaily?: boolean | undefined;
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

/** Draws into an element, as wide as that is; `current` has the values of lines that keep their names. */
export function plotIn(element: HTMLElement, current: () => Plotted): UPlot {
  return new UPlot(optionsOf(current, element.clientWidth), dataOf(current()), element);
}

export const shown = (value: number | null | undefined, format: Format): string =>
  value === null || value === undefined ? "none" : format(value);

/** Whether there is something to draw: a line along zero says no more than a sentence. */
export const isDrawn = (lines: readonly Line[]): boolean =>
  lines.some(({ values }) => values.some((value) => value !== null && value !== 0));

/** What the legend shows of a line while nothing is pointed at: the last value, unless it has something better. */
function summaryOf({ times, format, isDaily }: Plotted, { values, summary, sameAs }: Line): string {
  const text = summary ?? (isDaily ? "" : latest(values, times, format).join(" "));
  return sameAs === undefined ? text : `${text}, same as ${sameAs}`.replace(/^, /, "");
}

const moment = new Intl.DateTimeFormat(undefined, {
  month: "short",
  day: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});

/** Of parts of bars what they reach up to: each is drawn over the ones before, and none where it is nothing. */
const stacked = (lines: readonly Line[]): Line["values"][] =>
  lines.map(({ values }, part) =>
    values.map((value, at) =>
      value ? lines.slice(part).reduce((sum, line) => sum + (line.values[at] ?? 0), 0) : null,
    ),
  );

export const dataOf = ({
  times,
  lines,
  isDaily = false,
}: Pick<Plotted, "times" | "lines" | "isDaily">): UPlot.AlignedData => [
  [...times],
  ...(isDaily ? stacked(lines) : lines.map(({ values }) => values)).map((values) => [...values]),
];

/** The points between two gaps, through which no line goes. */
const alone: UPlot.Series.Points.Filter = (plot, series) => {
  const values = plot.data[series] ?? [];
  const isKnown = (index: number) => typeof values[index] === "number";
  return Array.from(values.keys()).filter(
    (index) => isKnown(index) && !isKnown(index - 1) && !isKnown(index + 1),
  );
};

const none: UPlot.Series.Points.Filter = () => null;

/** Looked up with each drawing, because the person may choose another theme. */
const colour = (name: string) => () =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** The gap between the line of a mark and its name. */
const MARK_GAP_PX = 4;

/** Draws the marks behind the lines: a dashed line, with its name beside its top where there is room. */
function drawMarks(plot: UPlot, marks: readonly Mark[]): void {
  const { ctx, bbox } = plot;
  const { min = 0, max = 0 } = plot.scales.x ?? {};
  ctx.save();
  ctx.strokeStyle = colour("--line-strong")();
  ctx.fillStyle = colour("--text-secondary")();
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textAlign = "left";
  ctx.textBaseline = "top";
  ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  ctx.lineWidth = devicePixelRatio;
  let freeFrom = bbox.left;
  for (const { timeMs, name } of marks) {
    if (timeMs / 1_000 < min || timeMs / 1_000 > max) {
      continue;
    }
    const at = Math.round(plot.valToPos(timeMs / 1_000, "x", true));
    ctx.beginPath();
    ctx.moveTo(at, bbox.top);
    ctx.lineTo(at, bbox.top + bbox.height);
    ctx.stroke();
    const gap = MARK_GAP_PX * devicePixelRatio;
    const { width } = ctx.measureText(name);
    const isLeft = at + gap + width > bbox.left + bbox.width;
    const from = isLeft ? at - gap - width : at + gap;
    if (from >= freeFrom) {
      ctx.fillText(name, from, bbox.top);
      freeFrom = from + width + gap;
    }
  }
  ctx.restore();
}

/** Shades the time before anything was measured, which is no time in which nothing happened: it has no grid. */
function drawNothing(plot: UPlot, { sinceS }: Plotted): void {
  const { ctx, bbox, data } = plot;
  const [times, ...lines] = data;
  const first = times.findIndex((at, index) =>
    sinceS === undefined ? lines.some((values) => values[index] != null) : at >= sinceS,
  );
  const width = first < 0 ? 0 : plot.valToPos(times[first] ?? 0, "x", true) - bbox.left;
  if (width < bbox.width * MIN_EMPTY_SHARE) {
    return;
  }
  ctx.save();
  ctx.fillStyle = colour("--raised")();
  ctx.fillRect(bbox.left, bbox.top, width, bbox.height);
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

// The axes: the same moment is at the same place in all charts of a page.

const AXIS_FONT = "12px system-ui, sans-serif";
const AXIS_GAP_PX = 6;

/** The width of the axis of values, unless its labels are longer. */
const GUTTER_PX = 68;

/** The room of a label on an axis of days. */
const LABEL_PX = 64;
const DAY_S = 86_400;

/** Days of an axis, as many as have room: the last one always. */
function daysOf({ data, width }: UPlot): number[] {
  const days = Array.from(data[0]);
  const step = Math.ceil(days.length / Math.max(1, Math.floor(width / LABEL_PX)));
  return days.filter((_, index) => (days.length - 1 - index) % step === 0);
}

const textsOf = (ticks: readonly number[]): string[] =>
  ticks.map((at) => (isFine(ticks) ? secondText : tickText)(at * 1_000));

/** As wide as its longest label. */
function widthOf({ ctx }: UPlot, labels: readonly string[] | null): number {
  ctx.save();
  ctx.font = AXIS_FONT;
  const widths = (labels ?? []).map((label) => ctx.measureText(label ?? "").width);
  ctx.restore();
  return Math.ceil(Math.max(0, ...widths)) + AXIS_GAP_PX;
}

function axesOf(plotted: Plotted): UPlot.Axis[] {
  const { format, isDaily = false } = plotted;
  const axis: UPlot.Axis = {
    stroke: colour("--text-secondary"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
    font: AXIS_FONT,
    gap: AXIS_GAP_PX,
  };
  const days: UPlot.Axis = {
    grid: { show: false },
    splits: daysOf,
    values: (_plot, splits) => splits.map((at) => utcDayText(at * 1_000)),
  };
  const times: UPlot.Axis = {
    splits: ({ bbox }, _axis, min, max) => ticksBetween(min, max, bbox.width / devicePixelRatio),
    values: (_plot, splits) => textsOf(splits),
  };
  return [
    {
      ...axis,
      size: 26,
      ...(isDaily ? days : times),
    },
    {
      ...axis,
      size: (plot, labels) => Math.max(isDaily ? 0 : GUTTER_PX, widthOf(plot, labels)),
      splits: (_plot, _axis, min, max) => valueTicks(min, max, axisOptions(plotted)),
      values: (_plot, splits) => splits.map((value) => format(value, Math.max(...splits))),
    },
  ];
}

/** The dashes that tell lines of one colour, or on one another, apart: the first line is solid. */
const DASHES = [[], [6, 6], [2, 4], [12, 4]] as const;

/** The borders that show these dashes in the legend. */
const MARKERS = ["solid", "dashed", "dotted", "dashed"] as const;

/** Of a day a bar takes most, and no more than is seen as one. */
const bars = UPlot.paths.bars?.({ size: [0.7, 48] }) as UPlot.Series.PathBuilder;

const axisOptions = ({ heightPx = HEIGHT_PX, ...rest }: Plotted): AxisOptions => ({
  ...rest,
  heightPx,
});

function optionsOf(current: () => Plotted, width: number): UPlot.Options {
  const { lines, marks = [], onZoom, isDaily = false, heightPx = HEIGHT_PX } = current();
  return {
    width,
    height: heightPx,
    class: isDaily ? "has-bars" : "has-lines",
    padding: [8, isDaily ? LABEL_PX / 4 : 1, 0, 0],
    cursor: {
      points: { size: 6, show: !isDaily },
      drag: { x: onZoom !== undefined, y: false, setScale: false, dist: DRAWN_PX },
      // Each chart takes what is drawn over it alone.
      sync: { key: CURSOR, filters: { pub: (type) => type !== "mousedown" && type !== "mouseup" } },
    },
    hooks: {
      drawAxes: isDaily
        ? []
        : [(plot) => drawNothing(plot, current()), (plot) => drawMarks(plot, marks)],
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
        // A piece of the line, as its style sheet has it: its upper edge.
        width: 2,
        dash: (_plot, series) => MARKERS[(lines[series - 1]?.dashes ?? 0) % MARKERS.length] ?? "",
        stroke: (_plot, series) => colour(lines[series - 1]?.colour ?? "--text")(),
        fill: (_plot, series) => colour(lines[series - 1]?.colour ?? "--text")(),
      },
    },
    scales: {
      ...(isDaily && {
        x: {
          range: (_plot: UPlot, min: number, max: number) => [min - DAY_S / 2, max + DAY_S / 2],
        },
      }),
      y: { range: (_plot, min, max) => axisRange(min, max, axisOptions(current())) },
    },
    axes: axesOf(current()),
    series: [
      {
        label: "",
        value: (_plot, at) =>
          at ? (isDaily ? utcDayText(at * 1_000) : moment.format(at * 1_000)) : "",
      },
      ...lines.map(({ name, colour: variable, dashes = 0 }, line) => ({
        label: name,
        stroke: colour(variable),
        dash: [...(DASHES[dashes % DASHES.length] ?? [])],
        width: 1.5,
        points: { show: false, size: 5, filter: isDaily ? none : alone },
        ...(isDaily && { fill: colour(variable), width: 0, paths: bars }),
        value: (_plot: UPlot, _value: number | null, _series: number, index: number | null) => {
          const plotted = current();
          const one = plotted.lines[line];
          if (one === undefined) {
            return "";
          }
          return index === null
            ? summaryOf(plotted, one)
            : shown(one.values[index], plotted.format);
        },
      })),
    ],
  };
}
