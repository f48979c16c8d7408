/** For how long a task waited and ran: one bar of its spans, and their sums in words. */
import type { TaskJson } from "../../../../../gen/tessera/v1/task_pb.js";
import { useNow } from "../../ui/use-now.ts";
import { outcomeOf } from "./attempt.tsx";
import { type Span, spansOf, timingText } from "./spans.ts";

/** How often a span that goes on is drawn longer. */
const REFRESH_MS = 1_000;

export function Timing({ task }: { readonly task: TaskJson }) {
  const spans = useSpans(task);
  return (
    <section className="timing" aria-label="Timing">
      <div className="timing-bar" aria-hidden="true">
        {spans.map((span) => (
          <span
            key={`${span.kind}-${span.fromMs}`}
            className={toneOf(span, task)}
            style={{ flexGrow: span.toMs - span.fromMs }}
          />
        ))}
      </div>
      <p className="secondary">{timingText(spans)}</p>
    </section>
  );
}

/** The spans of a task as they are now. */
export function useSpans(task: TaskJson): readonly Span[] {
  const nowMs = useNow(task.finishedAt === undefined ? REFRESH_MS : undefined);
  return spansOf(task, Math.max(nowMs, Date.now()));
}

/** The class that a span is painted by. */
export function toneOf({ kind, attempt }: Span, task: TaskJson): string {
  return attempt === undefined ? kind : outcomeOf(attempt, task)[0];
}
