/** The log lines of a task's function, with a search. */
import { Fragment, useId, useState } from "react";
import type { TaskEventJson } from "../../../../../gen/tessera/v1/task_pb.js";
import { counted } from "../../ui/counted.ts";
import { StreamStatus } from "../../ui/stream-status.tsx";
import { useFollowing } from "../../ui/use-following.ts";
import type { TaskEvents } from "./use-task-events.ts";
import "../../ui/log.css";

interface TaskLogProps {
  readonly events: Pick<TaskEvents, "lines" | "state">;
}

export function TaskLog({ events: { lines, state } }: TaskLogProps) {
  const heading = useId();
  const [search, setSearch] = useState("");
  const wanted = search.toLowerCase();
  const shown = lines.filter((line) => textOf(line).toLowerCase().includes(wanted));
  const box = useFollowing(shown.length);
  return (
    <section className="log" aria-labelledby={heading}>
      <div className="log-bar">
        <h2 id={heading}>Log</h2>
        <input
          type="search"
          aria-label="Search the log"
          placeholder="Search"
          value={search}
          onChange={(event) => setSearch(event.target.value)}
        />
        <StreamStatus state={state} />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <section className="log-lines short" ref={box} tabIndex={0} aria-label="Lines">
        {shown.map((line, index) => (
          <Fragment key={line.sequence}>
            <LeftOut count={wanted === "" ? missingLines(line, shown[index - 1]) : 0} />
            <p className={`log-line ${line.log?.level}`}>
              <time dateTime={line.time}>{line.time?.slice(11, 23)}</time>
              <span className="log-worker">{line.log?.level}</span>
              <span>{textOf(line)}</span>
            </p>
          </Fragment>
        ))}
        {shown.length === 0 && (
          <p className="secondary">
            {lines.length === 0
              ? "No lines yet: functions write them with ctx.log."
              : "No line has this text."}
          </p>
        )}
      </section>
    </section>
  );
}

/** In the place of lines that a long log does not keep. */
function LeftOut({ count }: { readonly count: number }) {
  return count > 0 ? <p className="secondary">{counted(count, "line")} left out</p> : null;
}

function missingLines(event: TaskEventJson, before: TaskEventJson | undefined): number {
  const [line, last] = [event.log?.line, before?.log?.line];
  return line && last && event.attempt === before?.attempt ? line - last - 1 : 0;
}

function textOf({ log }: TaskEventJson): string {
  const { message = "", fields } = log ?? {};
  return fields === undefined ? message : `${message} ${JSON.stringify(fields)}`;
}
