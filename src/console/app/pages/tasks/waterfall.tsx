/** The life of a task with several attempts as a waterfall, in which one is chosen. */
import { useEffect, useRef } from "react";
import type { TaskJson } from "../../../../../gen/tessera/v1/task_pb.js";
import { useShortcut } from "../../shell/keys.ts";
import { counted } from "../../ui/counted.ts";
import { duration } from "../../ui/duration.ts";
import { failedAlike, type Span } from "./spans.ts";
import { toneOf, useSpans } from "./timing.tsx";

const WORDS = { scheduled: "Scheduled", queued: "Queued", pause: "Backoff" } as const;

interface WaterfallProps {
  readonly task: TaskJson;
  /** The number of the attempt that is shown beside it. */
  readonly chosen: number | undefined;
  onChoose(number: number): void;
}

export function Waterfall({ task, chosen, onChoose }: WaterfallProps) {
  const spans = useSpans(task);
  const fromMs = spans[0]?.fromMs ?? 0;
  const lengthMs = Math.max(1, ...spans.map(({ toMs }) => toMs - fromMs));
  const numbers = spans.flatMap(({ attempt }) => attempt?.number ?? []);
  const step = (by: number): void => {
    const next = numbers[numbers.indexOf(chosen ?? 0) + by];
    if (next !== undefined) {
      onChoose(next);
    }
  };
  const areAlike = failedAlike(task) > 1;
  const list = useRef<HTMLOListElement>(null);
  useEffect(() => {
    const shown = chosen === undefined ? null : list.current?.querySelector("[aria-pressed=true]");
    // Within the list alone: the page stays where it is.
    if (list.current && shown) {
      const [box, line] = [list.current.getBoundingClientRect(), shown.getBoundingClientRect()];
      list.current.scrollTop +=
        Math.max(0, line.bottom - box.bottom) - Math.max(0, box.top - line.top);
    }
  }, [chosen]);
  useShortcut("j", () => step(1));
  useShortcut("k", () => step(-1));
  const share = (ms: number): string => `${(100 * ms) / lengthMs}%`;
  return (
    <section className="waterfall" aria-labelledby="waterfall">
      <div className="attempt-line">
        <h2 id="waterfall">Timeline</h2>
        {task.finishedAt === undefined && (
          <span className="secondary">{duration(lengthMs)} so far</span>
        )}
      </div>
      <ol ref={list}>
        {spans.map((span) => {
          const { attempt } = span;
          // The last one is seen as well, however short it is.
          const from = `min(${share(span.fromMs - fromMs)}, 100% - 0.25rem)`;
          const width = share(span.toMs - span.fromMs);
          const line = (
            <>
              <span className="waterfall-name">{nameOf(span)}</span>
              <span className="waterfall-track" aria-hidden="true">
                {(span.isOpen || span.toMs > span.fromMs) && (
                  <span className={toneOf(span, task)} style={{ marginInlineStart: from, width }} />
                )}
              </span>
              <span className="waterfall-time">
                {duration(span.toMs - span.fromMs)}
                {span.isOpen && "…"}
              </span>
            </>
          );
          return (
            <li key={`${span.kind}-${span.fromMs}`}>
              {attempt === undefined ? (
                <div className="waterfall-line">{line}</div>
              ) : (
                <button
                  type="button"
                  className="waterfall-line"
                  aria-pressed={attempt.number === chosen}
                  onClick={() => onChoose(attempt.number ?? 0)}
                >
                  {line}
                  {attempt.failure !== undefined && !areAlike && (
                    <span className="waterfall-error">{attempt.failure.message}</span>
                  )}
                </button>
              )}
            </li>
          );
        })}
      </ol>
    </section>
  );
}

function nameOf({ kind, attempt, leftOut = 0 }: Span): string {
  switch (kind) {
    case "attempt":
      return `Attempt ${attempt?.number}`;
    case "left-out":
      return `${counted(leftOut, "attempt")} not kept`;
    default:
      return WORDS[kind];
  }
}
