/** The log lines of a task's function, with a search. */
import { useState } from "react";
import type { TaskEventJson } from "../../../../../gen/tessera/v1/task_pb.js";
import { Field } from "../../ui/field.tsx";
import { StreamStatus } from "../../ui/stream-status.tsx";
import { useFollowing } from "../../ui/use-following.ts";
import type { TaskEvents } from "./use-task-events.ts";

export function TaskLog({ events: { lines, state } }: { readonly events: TaskEvents }) {
  const [search, setSearch] = useState("");
  const wanted = search.toLowerCase();
  const shown = lines.filter((line) => textOf(line).toLowerCase().includes(wanted));
  const box = useFollowing(shown.length);
  return (
    <section className="log" aria-labelledby="log">
      <h2 id="log">Log</h2>
      <div className="log-bar">
        <Field label="Search">
          {(control) => (
            <input
              {...control}
              type="search"
              value={search}
              onChange={(event) => setSearch(event.target.value)}
            />
          )}
        </Field>
        <StreamStatus state={state} />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <section className="log-lines short" ref={box} tabIndex={0} aria-label="Lines">
        {shown.map((line) => (
          <p key={line.sequence} className={`log-line ${line.log?.level}`}>
            <time dateTime={line.time}>{line.time?.slice(11, 23)}</time>
            <span className="log-worker">{line.log?.level}</span>
            <span>{textOf(line)}</span>
          </p>
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

function textOf({ log }: TaskEventJson): string {
  const { message = "", fields } = log ?? {};
  return fields === undefined ? message : `${message} ${JSON.stringify(fields)}`;
}
