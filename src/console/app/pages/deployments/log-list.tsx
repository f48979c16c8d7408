/**
 * The lines of a log, of which only those in view are in the document: all have one height, but for
 * the one that is open. Equal lines that follow each other are one row. The list keeps to its end
 * while it is followed, and otherwise keeps what is in view where it is, whatever comes before it or
 * goes.
 */
import { Link } from "@tanstack/react-router";
import {
  Fragment,
  type KeyboardEvent,
  type ReactNode,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
  useSyncExternalStore,
} from "react";
import type { DeploymentEndpointJson } from "../../../../../gen/tessera/v1/deployment_pb.js";
import { lastOf, type RunOf } from "../../api/runs.ts";
import { useShortcut } from "../../shell/keys.ts";
import { Button } from "../../ui/button.tsx";
import { CopyButton } from "../../ui/copy-button.tsx";
import { counted } from "../../ui/counted.ts";
import { Facts } from "../../ui/facts.tsx";
import { isForRow } from "../../ui/is-for-row.ts";
import type { LogRow } from "../../ui/log-rows.ts";
import { Repeats } from "../../ui/repeats.tsx";
import { exactText } from "../../ui/time.tsx";
import { dayText, secondText } from "../../ui/time-range.ts";
import { useLogRows } from "../../ui/use-log-rows.ts";
import {
  commonOf,
  folded,
  isRepeat,
  isRepeatAtOnce,
  type Kinds,
  partsOf,
  placesOf,
  type ShownLine,
} from "./log-lines.ts";
import type { LogName } from "./use-log-lines.ts";

/** Heights of a line, as the style sheet has them: on narrow screens it takes two rows. */
const ROW_PX = 24;
const NARROW_ROW_PX = 48;
const NARROW = matchMedia("(max-width: 48rem)");

/** Lines beyond the view that are in the document. */
const MORE_ROWS = 12;

/** Nearer to the end than this, the view is at the end. */
const AT_END_PX = 4;

/** How far below the top of the view a line is brought. */
const REVEAL_PX = 96;

interface LogListProps {
  readonly name: LogName;
  readonly kinds: Kinds;
  readonly lines: readonly ShownLine[];
  readonly search: string;
  /** No filter leaves lines out: what is missing between two is gone. */
  readonly isWhole: boolean;
  readonly isFollowing: boolean;
  /** In the place of lines. */
  readonly empty: ReactNode;
  onFollow(isFollowing: boolean): void;
  /** Shows the lines of a task alone, or all lines. */
  onNarrow(task: string): void;
}

export function LogList(props: LogListProps) {
  const { lines, search, isWhole, name, kinds, isFollowing, onFollow, onNarrow, empty } = props;
  const [rows, toggleRun] = useLogRows(lines, isWhole ? isRepeatAtOnce : isRepeat);
  const box = useRef<HTMLElement>(null);
  const [view, setView] = useState({ top: 0, height: 0 });
  const [open, setOpen] = useState<number>();
  const [openPx, setOpenPx] = useState(0);
  const [current, setCurrent] = useState<number>();
  /** What is at the top of the view, and is to stay there. */
  const anchor = useRef({ sequence: 0, top: 0 });
  /** A line that is to come into view with the next lines. */
  const reveal = useRef<number>(undefined);
  /** A line that was opened just now. */
  const opened = useRef<number>(undefined);
  const lastTop = useRef(0);
  const rowPx = useSyncExternalStore(onNarrowChange, () =>
    NARROW.matches ? NARROW_ROW_PX : ROW_PX,
  );
  const openAt = open === undefined ? -1 : indexOf(rows, open);
  const openLine = rows[openAt]?.lines.find(({ sequence }) => sequence === open);
  const isOpenShown = openLine !== undefined;
  const morePx = isOpenShown ? openPx : 0;
  const topOf = (index: number) => index * rowPx + (isOpenShown && index > openAt ? morePx : 0);
  const indexAt = (top: number) => {
    const openEnd = (openAt + 1) * rowPx;
    const inRows = isOpenShown && top > openEnd ? Math.max(top - morePx, openEnd - 1) : top;
    return Math.max(0, Math.floor(inRows / rowPx));
  };
  const totalPx = topOf(rows.length);
  const from = Math.max(0, indexAt(view.top) - MORE_ROWS);
  const to = Math.min(rows.length, indexAt(view.top + view.height) + 1 + MORE_ROWS);

  const look = (): void => {
    const element = box.current;
    if (element !== null) {
      const { scrollTop, clientHeight } = element;
      const index = indexAt(scrollTop);
      anchor.current = { sequence: rows[index]?.lines[0].sequence ?? 0, top: topOf(index) };
      setView({ top: scrollTop, height: clientHeight });
    }
  };
  const latestLook = useRef(look);
  latestLook.current = look;

  // biome-ignore lint/correctness/useExhaustiveDependencies: other lines and heights move the view
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) {
      return;
    }
    const { sequence, top } = anchor.current;
    if (isFollowing) {
      element.scrollTop = element.scrollHeight;
    } else if (reveal.current !== undefined) {
      element.scrollTop = topOf(indexOf(rows, reveal.current)) - REVEAL_PX;
    } else {
      element.scrollTop += topOf(indexOf(rows, sequence)) - top;
    }
    if (opened.current !== undefined && openPx > 0) {
      // All of it, as far as there is room, and its first row in any case.
      const end = topOf(openAt) + rowPx + openPx;
      const toEnd = Math.max(element.scrollTop, end - element.clientHeight);
      element.scrollTop = Math.min(toEnd, topOf(openAt));
      opened.current = undefined;
    }
    reveal.current = undefined;
    lastTop.current = element.scrollTop;
    latestLook.current();
  }, [rows, isFollowing, morePx, rowPx, view.height]);

  useEffect(() => {
    const resizing = new ResizeObserver(() => latestLook.current());
    if (box.current) {
      resizing.observe(box.current);
    }
    return () => resizing.disconnect();
  }, []);

  const onScroll = (): void => {
    const element = box.current;
    if (element === null) {
      return;
    }
    const { scrollTop, scrollHeight, clientHeight } = element;
    if (scrollHeight - scrollTop - clientHeight < AT_END_PX) {
      onFollow(true);
    } else if (scrollTop < lastTop.current) {
      onFollow(false);
    }
    lastTop.current = scrollTop;
    look();
  };

  /** Opens a line, or closes it; what is read stays where it is. */
  const toggle = (sequence: number): void => {
    setCurrent(sequence);
    setOpen(sequence === open ? undefined : sequence);
    setOpenPx(0);
    opened.current = sequence === open ? undefined : sequence;
    onFollow(false);
  };
  const focusOn = (index: number): void => {
    const at = Math.max(0, Math.min(index, rows.length - 1));
    const row = rows[at];
    const element = box.current;
    if (row === undefined || element === null) {
      return;
    }
    onFollow(false);
    setCurrent(lastOf(row.lines).sequence);
    if (!element.contains(document.activeElement)) {
      element.focus({ preventScroll: true });
    }
    const { scrollTop, clientHeight } = element;
    const [top, end] = [topOf(at), topOf(at) + rowPx];
    if (top < scrollTop || end > scrollTop + clientHeight) {
      element.scrollTop = top < scrollTop ? top : end - clientHeight;
    }
  };
  const go = (step: number): void => {
    const at = current === undefined ? -1 : indexOf(rows, current);
    focusOn(at === -1 ? indexAt(view.top + view.height) - 1 : at + step);
  };
  useShortcut("j", () => go(1));
  useShortcut("k", () => go(-1));
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      go(step);
    } else if (event.key === "Escape" && open !== undefined) {
      event.stopPropagation();
      setOpen(undefined);
    }
  };
  useEffect(() => {
    if (current !== undefined && box.current?.contains(document.activeElement)) {
      box.current
        .querySelector<HTMLElement>(`[data-sequence="${current}"] > .log-open`)
        ?.focus({ preventScroll: true });
    }
  }, [current]);

  const isOneDay = lines.length === 0 || dayText(lines[0]?.timeMs ?? 0) === dayText(Date.now());
  return (
    <section
      className="log-list"
      ref={box}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
      tabIndex={0}
      aria-label="Lines"
      onScroll={onScroll}
      onKeyDown={onKeyDown}
    >
      {lines.length === 0 && <div className="log-empty">{empty}</div>}
      <div style={{ height: totalPx }}>
        <div style={{ transform: `translateY(${topOf(from)}px)` }}>
          {rows.slice(from, to).map((row, index) => (
            <Fragment key={row.lines[0].sequence}>
              <LineRow
                row={row}
                missing={isWhole ? missingBefore(row, rows[from + index - 1]) : 0}
                search={search}
                name={name}
                kinds={kinds}
                isOneDay={isOneDay}
                isOpen={isOpenShown && from + index === openAt}
                isCurrent={current !== undefined && isIn(row, current)}
                onToggle={toggle}
                onToggleRun={() => {
                  onFollow(false);
                  toggleRun(row);
                }}
              />
              {openLine !== undefined && from + index === openAt && (
                <Details
                  line={openLine}
                  run={row.lines}
                  search={search}
                  name={name}
                  kinds={kinds}
                  onHeight={setOpenPx}
                  onNarrow={(task) => {
                    reveal.current = openLine.sequence;
                    onNarrow(task);
                  }}
                />
              )}
            </Fragment>
          ))}
        </div>
      </div>
    </section>
  );
}

function onNarrowChange(onChange: () => void): () => void {
  NARROW.addEventListener("change", onChange);
  return () => NARROW.removeEventListener("change", onChange);
}

type Row = LogRow<ShownLine>;

const isIn = ({ lines }: Row, sequence: number): boolean =>
  lines[0].sequence <= sequence && sequence <= lastOf(lines).sequence;

/** Where the row of a line is among others, or the first after it. */
function indexOf(rows: readonly Row[], sequence: number): number {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((rows[middle]?.lines.at(-1)?.sequence ?? 0) < sequence) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

interface RowProps {
  readonly row: Row;
  /** Lines before it that nobody keeps any more. */
  readonly missing: number;
  readonly search: string;
  readonly name: LogName;
  readonly kinds: Kinds;
  readonly isOneDay: boolean;
  readonly isOpen: boolean;
  readonly isCurrent: boolean;
  onToggle(sequence: number): void;
  onToggleRun(): void;
}

function LineRow(props: RowProps) {
  const { row, missing, search, name, kinds, isOneDay, isOpen, isCurrent } = props;
  const { onToggle, onToggleRun } = props;
  const { lines, count, isUnfolded } = row;
  const { sequence, timeMs, level, text, sent } = lastOf(lines);
  const { of, rest } = partsOf(text, kinds);
  // A search shows the whole line, because a match may begin in the name and end in the text.
  const isSplit = of !== "" && search === "";
  const { text: shown, more } = folded(isSplit ? rest : text, search);
  const kind = kinds.get(of);
  const task = commonOf(lines, (line) => taskOf(line, kind));
  const classes = ["log-row", level, isOpen && "is-open", isCurrent && "is-current"];
  const timeOf = (ms: number) => `${isOneDay ? "" : `${dayText(ms)} `}${secondText(ms)}`;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: for the pointer; keys have the button in it
    // biome-ignore lint/a11y/useKeyWithClickEvents: as above
    <div
      className={[...classes, isUnfolded && "is-unfolded"].filter(Boolean).join(" ")}
      data-sequence={sequence}
      onClick={(event) => {
        if (isForRow(event)) {
          onToggle(sequence);
        }
      }}
    >
      <button
        type="button"
        className="log-open"
        tabIndex={-1}
        aria-expanded={isOpen}
        aria-label={`Line ${sequence}`}
        onClick={() => onToggle(sequence)}
      />
      <time dateTime={sent.time} title={exactText(timeMs)}>
        {timeOf(timeMs)}
      </time>
      <span className="log-level">{level === "info" ? "" : level}</span>
      {isSplit && <bdi className="log-of">{of}</bdi>}
      <span className="log-text">
        {missing > 0 && <span className="chip">{counted(missing, "line")} before it not kept</span>}
        <bdi>
          <Marked text={shown} search={search} />
        </bdi>
      </span>
      <Repeats
        count={count}
        isUnfolded={isUnfolded}
        times={[timeOf(lines[0].timeMs), timeOf(timeMs)]}
        onToggle={onToggleRun}
      />
      {more !== "" && <span className="log-more secondary">{more}</span>}
      {task !== "" && <TaskLink name={name} task={task} />}
      <span className="log-worker" title={commonOf(lines, writerOf)}>
        {commonOf(lines, (line) => shortWorker(line.sent.worker))}
      </span>
    </div>
  );
}

function TaskLink({ name, task }: { readonly name: LogName; readonly task: string }) {
  return (
    <Link
      className="chip"
      to="/o/$organization/deployments/$deployment/tasks/$task"
      params={{ ...name, task }}
      tabIndex={-1}
      title={`Task ${task}`}
      aria-label={`Task ${task.slice(-6)}`}
    >
      task {task.slice(-6)}
    </Link>
  );
}

/** The task whose function wrote a line; empty for calls of apis, which are no tasks. */
const taskOf = (
  { sent: { taskId = "" } }: ShownLine,
  kind: DeploymentEndpointJson["kind"],
): string => (kind === "ENDPOINT_KIND_API" ? "" : taskId);

/** The worker that wrote a line, or the node. */
const writerOf = ({ sent: { worker, node } }: ShownLine): string => worker || `node ${node}`;

/** The end of a worker's id, which tells it from others. */
const shortWorker = (worker = ""): string => worker.split("/").at(-1)?.slice(-6) || "node";

function missingBefore({ lines: [{ sequence }] }: Row, before: Row | undefined): number {
  return before === undefined ? 0 : sequence - lastOf(before.lines).sequence - 1;
}

interface DetailsProps {
  readonly line: ShownLine;
  /** The equal lines that its row stands for, with it. */
  readonly run: RunOf<ShownLine>;
  readonly search: string;
  readonly name: LogName;
  readonly kinds: Kinds;
  onHeight(px: number): void;
  onNarrow(task: string): void;
}

/** All of a line, below it. */
function Details({ line, run, search, name, kinds, onHeight, onNarrow }: DetailsProps) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = box.current;
    if (element !== null) {
      onHeight(element.offsetHeight);
      const resizing = new ResizeObserver(() => onHeight(element.offsetHeight));
      resizing.observe(element);
      return () => resizing.disconnect();
    }
  }, [onHeight]);
  const { text, level, timeMs, sequence, sent } = line;
  const { worker, node = "", revision, stream = "", taskId = "" } = sent;
  const { of } = partsOf(text, kinds);
  const task = taskOf(line, kinds.get(of));
  return (
    <div ref={box} className="log-details copied-from">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <pre className="result-text" tabIndex={0}>
        <Marked text={text} search={search} />
      </pre>
      <Facts
        entries={{
          Time: exactText(timeMs),
          Level: level,
          "Written to": stream === "node" ? "the log of the node" : stream,
          ...(of && { Endpoint: of }),
          ...(worker && { Worker: worker }),
          Node: node,
          ...(revision ? { Revision: String(revision) } : {}),
          ...(taskId && { [task ? "Task" : "Call"]: taskId }),
          Line: String(sequence),
          ...(run.length > 1 && {
            Repeated: `${run.length.toLocaleString("en")} times since ${exactText(run[0].timeMs)}`,
          }),
        }}
      />
      <div className="log-actions">
        <CopyButton text={text} what="the line" />
        {task !== "" && (
          <Link
            className="button quiet"
            to="/o/$organization/deployments/$deployment/tasks/$task"
            params={{ ...name, task }}
          >
            Open task
          </Link>
        )}
        {taskId !== "" && (
          <Button kind="quiet" onClick={() => onNarrow(taskId)}>
            Only this {task ? "task" : "call"}
          </Button>
        )}
        <Button kind="quiet" onClick={() => onNarrow("")}>
          Show around it
        </Button>
      </div>
    </div>
  );
}

/** A text with each place marked that has what was searched for. */
function Marked({ text, search }: { readonly text: string; readonly search: string }) {
  const places = placesOf(text, search);
  return places.length === 0 ? (
    text
  ) : (
    <>
      {places.map((at, index) => (
        <Fragment key={at}>
          {text.slice(index === 0 ? 0 : (places[index - 1] ?? 0) + search.length, at)}
          <mark>{text.slice(at, at + search.length)}</mark>
        </Fragment>
      ))}
      {text.slice((places.at(-1) ?? 0) + search.length)}
    </>
  );
}
