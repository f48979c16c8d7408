/** Lines over time, drawn by uPlot: the numbers are below on hover, and in a table for screen readers. */
import { useEffect, useId, useRef } from "react";
import UPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import "./chart.css";

const HEIGHT_PX = 180;

/** Rows of the table for screen readers. */
const MAX_ROWS = 24;

export interface Line {
  readonly name: string;
  /** A variable of the style sheet. */
  readonly colour: string;
  /** One for each time; null where nothing was measured. */
  readonly values: readonly (number | null)[];
}

export interface ChartProps {
  readonly title: string;
  /** Seconds since 1970. */
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  /** Writes a value with its unit. */
  readonly format: (value: number) => string;
}

export function Chart({ title, times, lines, format }: ChartProps) {
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot>(undefined);
  const latest = useRef({ times, lines, format });
  latest.current = { times, lines, format };
  const names = lines.map(({ name }) => name).join("\n");
  // biome-ignore lint/correctness/useExhaustiveDependencies: other lines are another plot
  useEffect(() => {
    const element = box.current;
    if (element === null) {
      return;
    }
    const made = new UPlot(
      optionsOf(latest.current, element.clientWidth),
      dataOf(latest.current),
      element,
    );
    plot.current = made;
    const watching = new ResizeObserver(() => {
      made.setSize({ width: element.clientWidth, height: HEIGHT_PX });
    });
    watching.observe(element);
    return () => {
      watching.disconnect();
      made.destroy();
      plot.current = undefined;
    };
  }, [names]);
  useEffect(() => plot.current?.setData(dataOf({ times, lines })), [times, lines]);
  const isEmpty = lines.every(({ values }) => values.every((value) => value === null));
  return (
    <section className="chart card" aria-labelledby={id}>
      <h3 id={id}>{title}</h3>
      {isEmpty && <p className="secondary">Nothing was measured in this time.</p>}
      <div ref={box} className={isEmpty ? "plot empty-plot" : "plot"} aria-hidden="true" />
      <div className="hidden">
        <table>
          <caption>{title}</caption>
          <thead>
            <tr>
              <th scope="col">Time</th>
              {lines.map(({ name }) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rowsOf(times).map((index) => (
              <tr key={times[index]}>
                <th scope="row">{new Date((times[index] ?? 0) * 1_000).toLocaleString()}</th>
                {lines.map(({ name, values }) => (
                  <td key={name}>{shown(values[index], format)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** The points that the table has: at even distances, with the last one. */
function rowsOf(times: readonly number[]): number[] {
  const step = Math.max(1, Math.ceil(times.length / MAX_ROWS));
  return times.map((_, index) => index).filter((index) => (times.length - 1 - index) % step === 0);
}

const shown = (value: number | null | undefined, format: ChartProps["format"]): string =>
  value === null || value === undefined ? "none" : format(value);

/** What the legend shows while nothing is pointed at. */
const latestOf = (values: UPlot.AlignedData[number] | undefined): number | null | undefined =>
  [...(values ?? [])].reverse().find((value) => value !== null);

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

const dataOf = ({ times, lines }: Pick<ChartProps, "times" | "lines">): UPlot.AlignedData => [
  [...times],
  ...lines.map(({ values }) => [...values]),
];

/** Looked up with each drawing, because the person may choose another theme. */
const colour = (name: string) => () =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function optionsOf(
  { lines, format }: Pick<ChartProps, "lines" | "format">,
  width: number,
): UPlot.Options {
  const axis = { stroke: colour("--text-secondary"), grid: { stroke: colour("--line"), width: 1 } };
  return {
    width,
    height: HEIGHT_PX,
    cursor: { points: { size: 6 }, drag: { x: false, y: false } },
    scales: { y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
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
        values: (_plot, splits) => splits.map((value) => format(value)),
      },
    ],
    series: [
      { value: (_plot, at) => (at ? moment.format(at * 1_000) : "latest") },
      ...lines.map(({ name, colour: variable }) => ({
        label: name,
        stroke: colour(variable),
        width: 1.5,
        points: { show: false },
        value: (plot: UPlot, value: number | null, series: number, index: number | null) =>
          shown(index === null ? latestOf(plot.data[series]) : value, format),
      })),
    ],
  };
}
