/** The log lines of a task's function, with a search and the least level; equal ones in a row are one. */
import { Fragment, useId, useState } from "react";
import type { TaskEventJson } from "../../../../../gen/tessera/v1/task_pb.js";
import { lastOf } from "../../api/runs.ts";
import { Button } from "../../ui/button.tsx";
import { counted } from "../../ui/counted.ts";
import type { LogRow } from "../../ui/log-rows.ts";
import { Repeats } from "../../ui/repeats.tsx";
import { Segments } from "../../ui/segments.tsx";
import { StreamStatus } from "../../ui/stream-status.tsx";
import { useFollowing } from "../../ui/use-following.ts";
import { useLogRows } from "../../ui/use-log-rows.ts";
import type { TaskEvents } from "./use-task-events.ts";
import "../../ui/log.css";

/** Of a longer line the beginning is shown until it is asked for. */
const MAX_LINE_CHARS = 1_000;

/** What is shown, and how many of the levels, the least first, that leaves out. */
const CHOICES = { All: 0, Info: 1, Warnings: 2, Errors: 3 } as const;
const LEVELS = ["debug", "info", "warn", "error"];

/** A shorter log is read without a search. */
const MIN_SEARCHED_LINES = 10;

interface TaskLogProps {
  readonly events: Pick<TaskEvents, "lines" | "state">;
}

export function TaskLog({ events: { lines, state } }: TaskLogProps) {
  const heading = useId();
  const [search, setSearch] = useState("");
  const [least, setLeast] = useState<keyof typeof CHOICES>("All");
  const wanted = search.toLowerCase();
  const isFiltered = wanted !== "" || least !== "All";
  const shown = lines.filter(
    (line) => rankOf(line) >= CHOICES[least] && textOf(line).toLowerCase().includes(wanted),
  );
  const [rows, toggleRun] = useLogRows(shown, isFiltered ? isRepeat : isRepeatAtOnce);
  const box = useFollowing(shown.length);
  return (
    <section className="log" aria-labelledby={heading}>
      <div className="log-bar">
        <h2 id={heading}>Log</h2>
        {lines.length >= MIN_SEARCHED_LINES && (
          <>
            <input
              type="search"
              aria-label="Search the log"
              placeholder="Search"
              value={search}
              onChange={(event) => setSearch(event.target.value)}
            />
            <Segments
              label="Least level"
              choices={Object.keys(CHOICES) as (keyof typeof CHOICES)[]}
              value={least}
              onChange={(choice) => setLeast(choice)}
            />
          </>
        )}
        <StreamStatus state={state} />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <section className="log-lines short" ref={box} tabIndex={0} aria-label="Lines">
        {rows.map((row, index) => (
          <Fragment key={row.lines[0].sequence}>
            <LeftOut count={isFiltered ? 0 : missingBefore(row, rows[index - 1])} />
            <Line row={row} onToggleRun={() => toggleRun(row)} />
          </Fragment>
        ))}
        {shown.length === 0 && <p className="secondary">{emptyText(lines.length, state.kind)}</p>}
      </section>
    </section>
  );
}

function emptyText(lines: number, state: TaskEvents["state"]["kind"]): string {
  if (lines > 0) {
    return "No lines match.";
  }
  return state === "ended"
    ? "It wrote no lines: functions write them with ctx.log, console.log and print."
    : "No lines yet: functions write them with ctx.log, console.log and print.";
}

type Row = LogRow<TaskEventJson>;

function Line({ row, onToggleRun }: { readonly row: Row; onToggleRun(): void }) {
  const { lines, count, isUnfolded } = row;
  const line = lastOf(lines);
  const { log } = line;
  const [isWhole, setWhole] = useState(false);
  const text = textOf(line);
  const isCut = text.length > MAX_LINE_CHARS && !isWhole;
  return (
    <p className={`log-line ${log?.level}${isUnfolded ? " is-unfolded" : ""}`}>
      <time dateTime={line.time}>{timeOf(line)}</time>
      <span className="log-worker">{log?.level}</span>
      <span>
        {isCut ? text.slice(0, MAX_LINE_CHARS) : text}
        <Repeats
          count={count}
          isUnfolded={isUnfolded}
          times={[timeOf(lines[0]), timeOf(line)]}
          onToggle={onToggleRun}
        />
        {isCut && (
          <Button kind="quiet" onClick={() => setWhole(true)}>
            … show all {text.length.toLocaleString("en")} characters
          </Button>
        )}
      </span>
    </p>
  );
}

/** To the millisecond, in UTC. */
const timeOf = ({ time = "" }: TaskEventJson): string => time.slice(11, 23);

/** How bad a line is: the place of its level. */
const rankOf = ({ log }: TaskEventJson): number => LEVELS.indexOf(log?.level ?? "");

/** In the place of lines that a long log does not keep. */
function LeftOut({ count }: { readonly count: number }) {
  return count > 0 ? <p className="secondary">{counted(count, "line")} left out</p> : null;
}

const missingBefore = ({ lines: [first] }: Row, before: Row | undefined): number =>
  before === undefined ? 0 : missingLines(first, lastOf(before.lines));

function missingLines(event: TaskEventJson, before: TaskEventJson): number {
  const [line, last] = [event.log?.line, before.log?.line];
  return line && last && event.attempt === before.attempt ? line - last - 1 : 0;
}

/** Whether a line repeats the shown one before it. */
const isRepeat = (line: TaskEventJson, before: TaskEventJson): boolean =>
  line.attempt === before.attempt &&
  line.log?.level === before.log?.level &&
  textOf(line) === textOf(before);

/** The same for a log that shows all its lines, where a gap between two of them stays visible. */
const isRepeatAtOnce = (line: TaskEventJson, before: TaskEventJson): boolean =>
  missingLines(line, before) === 0 && isRepeat(line, before);

function textOf({ log }: TaskEventJson): string {
  const { message = "", fields } = log ?? {};
  return fields === undefined ? message : `${message} ${JSON.stringify(fields)}`;
}
