/**
 * Lines over time: the numbers are below on hover, and in a table for screen readers. A chart is
 * drawn when it comes near the view, because a service may have fifty.
 */
import { useEffect, useId, useMemo, useRef, useState } from "react";
import type UPlot from "uplot";
import { Button } from "../../ui/button.tsx";
import { type ChartNumber, toldApart } from "../../ui/line.ts";
import { dataOf, HEIGHT_PX, isDrawn, type Plotted, plotIn, shown } from "./plot.ts";
import "./chart.css";

/** How far out of the view a chart is drawn already. */
const NEAR_PX = 400;

/** Rows of the table for screen readers. */
const MAX_ROWS = 24;

/** More lines cannot be told apart at a glance: a button below shows them. */
const MAX_LINES = 6;

interface ChartProps extends Plotted {
  readonly title: string;
  /** The name of the metric, if the title is its description. */
  readonly name?: string | undefined;
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
  const { title, name, detail, note, times, lines: all, format, numbers = [], marks } = props;
  const {
    isDaily,
    heightPx = HEIGHT_PX,
    empty = "Nothing was measured in this time.",
    zero = "It was 0 all the time.",
  } = props;
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot>(undefined);
  const [isAllShown, setAllShown] = useState(false);
  const present = useMemo(() => all.filter((line) => isDrawn([line])), [all]);
  const lines = useMemo(
    () => toldApart(isAllShown ? present : present.slice(0, MAX_LINES), isDaily),
    [present, isAllShown, isDaily],
  );
  const latest = useRef<Plotted>(props);
  latest.current = { ...props, lines };
  const drawn = [
    ...lines.map((line) => `${line.dashes} ${line.colour} ${line.name}`),
    ...(marks ?? []).map((mark) => mark.name),
  ].join("\n");
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
      plot.current?.setSize({ width: element.clientWidth, height: heightPx });
    });
    resizing.observe(element);
    return () => {
      nearing.disconnect();
      resizing.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [drawn, heightPx]);
  useEffect(
    () => plot.current?.setData(dataOf({ times, lines, isDaily })),
    [times, lines, isDaily],
  );
  const isEmpty = lines.length === 0;
  const isZero = all.some(({ values }) => values.some((value) => value === 0));
  return (
    <section className="chart card" aria-labelledby={name === undefined ? id : `${id} ${id}-name`}>
      <h3 id={id}>{title}</h3>
      {(name ?? detail) !== undefined && (
        <p className="secondary">
          {name !== undefined && (
            <>
              <code id={`${id}-name`}>{name}</code> ·{" "}
            </>
          )}
          {detail}
        </p>
      )}
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
      <div
        ref={box}
        className={isEmpty ? "plot empty-plot" : "plot"}
        style={{ minHeight: heightPx }}
        aria-hidden="true"
      />
      {present.length > lines.length && (
        <Button className="chart-all" onClick={() => setAllShown(true)}>
          Show all {present.length}
        </Button>
      )}
      {note !== undefined && <p className="secondary">{note}</p>}
      {!isEmpty && (
        <div className="hidden">
          <table>
            <caption>{title}</caption>
            <thead>
              <tr>
                <th scope="col">Time</th>
                {lines.map((line) => (
                  <th key={line.name} scope="col">
                    {line.name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rowsOf(times).map((index) => (
                <tr key={times[index]}>
                  <th scope="row">{new Date((times[index] ?? 0) * 1_000).toLocaleString()}</th>
                  {lines.map((line) => (
                    <td key={line.name}>{shown(line.values[index], format)}</td>
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
