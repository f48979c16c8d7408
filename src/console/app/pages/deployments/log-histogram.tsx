/** How many lines there were over the shown time, by level. A bar, or bars that are drawn over, narrow it. */
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import { counted } from "../../ui/counted.ts";
import { rangeText, secondText, type TimeBounds, tickText } from "../../ui/time-range.ts";
import { type Bar, barsOf, type ShownLine } from "./log-lines.ts";
import { LEVELS } from "./log-search.ts";

/** Ticks of a shorter range have seconds. */
const SECONDS_BELOW_MS = 600_000;

/** Room of a bar. */
const BAR_PX = 10;

interface LogHistogramProps {
  readonly lines: readonly ShownLine[];
  readonly bounds: TimeBounds;
  onChoose(bounds: TimeBounds): void;
}

export function LogHistogram({ lines, bounds, onChoose }: LogHistogramProps) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  /** The bars between which the pointer is drawn. */
  const [drawn, setDrawn] = useState<readonly [from: number, to: number]>();
  /** The bar that the keys are at. */
  const [at, setAt] = useState<number>();
  useEffect(() => {
    const resizing = new ResizeObserver(([entry]) => setWidth(entry?.contentRect.width ?? 0));
    if (box.current) {
      resizing.observe(box.current);
    }
    return () => resizing.disconnect();
  }, []);
  const { fromMs, toMs } = bounds;
  const bars = useMemo(
    () => barsOf(lines, { fromMs, toMs }, Math.max(12, Math.floor(width / BAR_PX))),
    [lines, fromMs, toMs, width],
  );
  const most = Math.max(1, ...bars.map(({ counts }) => totalOf(counts)));
  const choose = (one: number, other: number): void => {
    const [first, last] = [bars[Math.min(one, other)], bars[Math.max(one, other)]];
    if (first !== undefined && last !== undefined) {
      onChoose({ fromMs: first.fromMs, toMs: last.toMs });
    }
    setDrawn(undefined);
  };
  const focused = Math.min(at ?? bars.length - 1, bars.length - 1);
  const move = ({ key }: KeyboardEvent): void => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[key];
    const next = step === undefined ? undefined : bars[focused + step] && focused + step;
    if (next !== undefined) {
      setAt(next);
      box.current?.querySelectorAll("button")[next]?.focus();
    }
  };
  const isDrawn = (index: number) =>
    drawn !== undefined && index >= Math.min(...drawn) && index <= Math.max(...drawn);
  return (
    <div className="log-histogram">
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset belongs to a form */}
      <div
        ref={box}
        className="log-bars"
        role="group"
        aria-label="Lines over time"
        onKeyDown={move}
        onPointerLeave={() => setDrawn(undefined)}
      >
        {width > 0 &&
          bars.map((bar, index) => (
            <button
              key={bar.fromMs}
              type="button"
              className={isDrawn(index) ? "drawn" : ""}
              tabIndex={index === focused ? 0 : -1}
              aria-label={wordsOf(bar)}
              title={wordsOf(bar)}
              onPointerDown={({ currentTarget, pointerId }) => {
                // A finger would hold on to the bar on which it began.
                if (currentTarget.hasPointerCapture(pointerId)) {
                  currentTarget.releasePointerCapture(pointerId);
                }
                setDrawn([index, index]);
              }}
              onPointerEnter={() => setDrawn((before) => before && [before[0], index])}
              onPointerUp={() => drawn !== undefined && choose(drawn[0], index)}
              // A click of the pointer was chosen by its end already.
              onClick={({ detail }) => detail === 0 && choose(index, index)}
            >
              {LEVELS.toReversed().map((level) => (
                <span
                  key={level}
                  className={level}
                  style={{ height: `${(bar.counts[level] / most) * 100}%` }}
                />
              ))}
            </button>
          ))}
      </div>
      <p className="log-ticks secondary" aria-hidden="true">
        {ticksOf(bars, width).map((ms) => (
          <span key={ms}>{(toMs - fromMs < SECONDS_BELOW_MS ? secondText : tickText)(ms)}</span>
        ))}
      </p>
    </div>
  );
}

const totalOf = (counts: Bar["counts"]): number => counts.error + counts.warn + counts.info;

function wordsOf(bar: Bar): string {
  const { error, warn } = bar.counts;
  return [
    rangeText(bar, Date.now()),
    counted(totalOf(bar.counts), "line"),
    ...(error > 0 ? [counted(error, "error")] : []),
    ...(warn > 0 ? [counted(warn, "warning")] : []),
  ].join(", ");
}

/** The times below the bars: at both ends, and between where there is room. */
function ticksOf(bars: readonly Bar[], width: number): readonly number[] {
  const [first, last] = [bars[0], bars.at(-1)];
  if (first === undefined || last === undefined || bars.length < 2) {
    return [];
  }
  const parts = width > 900 ? 4 : width > 500 ? 2 : 1;
  const lengthMs = last.toMs - first.fromMs;
  return Array.from({ length: parts + 1 }, (_, index) => first.fromMs + (lengthMs * index) / parts);
}
