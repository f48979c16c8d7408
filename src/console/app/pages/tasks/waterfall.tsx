/** The life of a task as a waterfall, in which an attempt is chosen. */
import type { TaskJson } from "../../../../../gen/tessera/v1/task_pb.js";
import { counted } from "../../ui/counted.ts";
import { duration } from "../../ui/duration.ts";
import { useNow } from "../../ui/use-now.ts";
import { outcomeOf } from "./attempt.tsx";
import { type Span, spansOf } from "./spans.ts";

/** How often the bars of what goes on grow. */
const REFRESH_MS = 1_000;

const WORDS = { scheduled: "Scheduled", queued: "Queued", pause: "Pause" } as const;

interface WaterfallProps {
  readonly task: TaskJson;
  /** The number of the attempt that is shown beside it. */
  readonly chosen: number | undefined;
  onChoose(number: number): void;
}

export function Waterfall({ task, chosen, onChoose }: WaterfallProps) {
  const nowMs = useNow(task.finishedAt === undefined ? REFRESH_MS : undefined);
  const spans = spansOf(task, Math.max(nowMs, Date.now()));
  const fromMs = spans[0]?.fromMs ?? 0;
  const lengthMs = Math.max(1, ...spans.map(({ toMs }) => toMs - fromMs));
  const share = (ms: number): string => `${(100 * ms) / lengthMs}%`;
  return (
    <section className="waterfall" aria-labelledby="waterfall">
      <h2 id="waterfall">Timeline</h2>
      <ol>
        {spans.map((span) => {
          const { attempt } = span;
          const bar = {
            marginInlineStart: share(span.fromMs - fromMs),
            width: share(span.toMs - span.fromMs),
          };
          const line = (
            <>
              <span className="waterfall-name">{nameOf(span)}</span>
              <span className="waterfall-track" aria-hidden="true">
                <span className={toneOf(span, task)} style={bar} />
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
                  {attempt.failure !== undefined && (
                    <span className="waterfall-error">{attempt.failure.message}</span>
                  )}
                </button>
              )}
            </li>
          );
        })}
      </ol>
      {spans.length > 1 && <p className="secondary">{duration(lengthMs)} in all</p>}
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

function toneOf({ kind, attempt }: Span, task: TaskJson): string {
  return attempt === undefined ? kind : outcomeOf(attempt, task)[0];
}
