/**
 * Lines over time: the numbers are below on hover, and in a table for screen readers. A chart is
 * drawn when it comes near the view, because a service may have fifty.
 */
import { useEffect, useId, useRef } from "react";
import type UPlot from "uplot";
import type { ChartNumber } from "./own-lines.ts";
import { dataOf, HEIGHT_PX, isDrawn, type Plotted, plotIn, shown } from "./plot.ts";
import "./chart.css";

/** How far out of the view a chart is drawn already. */
const NEAR_PX = 400;

/** Rows of the table for screen readers. */
const MAX_ROWS = 24;

interface ChartProps extends Plotted {
  readonly title: string;
  /** What is measured, in a sentence. */
  readonly help?: string;
  /** What the lines are, and in which unit. */
  readonly detail?: string;
  /** What is not in the chart. */
  readonly note?: string | undefined;
  readonly numbers?: readonly ChartNumber[];
  /** What did not happen where there is no line. */
  readonly empty?: string;
  /** What is said where all is zero. */
  readonly zero?: string;
}

export function Chart(props: ChartProps) {
  const { title, help, detail, note, times, lines, format, numbers = [], marks } = props;
  const { empty = "Nothing was measured in this time.", zero = "It was 0 all the time." } = props;
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot>(undefined);
  const latest = useRef(props);
  latest.current = props;
  const names = [...lines, ...(marks ?? [])].map(({ name }) => name).join("\n");
  // biome-ignore lint/correctness/useExhaustiveDependencies: other lines are another plot
  useEffect(() => {
    const element = box.current;
    if (element === null) {
      return;
    }
    const nearing = new IntersectionObserver(
      ([entry]) => {
        if (entry?.isIntersecting && plot.current === undefined) {
          plot.current = plotIn(element, () => latest.current);
        }
      },
      { rootMargin: `${NEAR_PX}px` },
    );
    nearing.observe(element);
    const resizing = new ResizeObserver(() => {
      plot.current?.setSize({ width: element.clientWidth, height: HEIGHT_PX });
    });
    resizing.observe(element);
    return () => {
      nearing.disconnect();
      resizing.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [names]);
  const { isDaily } = props;
  useEffect(
    () => plot.current?.setData(dataOf({ times, lines, isDaily })),
    [times, lines, isDaily],
  );
  const isEmpty = !isDrawn(lines);
  const isZero = lines.some(({ values }) => values.some((value) => value === 0));
  return (
    <section className="chart card" aria-labelledby={id}>
      <h3 id={id}>{title}</h3>
      {help && <p>{help}</p>}
      {detail !== undefined && <p className="secondary">{detail}</p>}
      {isEmpty ? (
        <p className="secondary">{isZero ? zero : empty}</p>
      ) : (
        numbers.length > 0 && (
          <p className="chart-numbers">
            {numbers.map(([value, words, colour]) => (
              <span key={words}>
                <strong style={colour ? { color: `var(${colour})` } : undefined}>{value}</strong>{" "}
                {words}
              </span>
            ))}
          </p>
        )
      )}
      <div ref={box} className={isEmpty ? "plot empty-plot" : "plot"} aria-hidden="true" />
      {note !== undefined && <p className="secondary">{note}</p>}
      {!isEmpty && (
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
      )}
    </section>
  );
}

/** The points that the table has: at even distances, with the last one. */
function rowsOf(times: readonly number[]): number[] {
  const step = Math.max(1, Math.ceil(times.length / MAX_ROWS));
  return times.map((_, index) => index).filter((index) => (times.length - 1 - index) % step === 0);
}
