/** A table of tasks, of which only the rows in view are in the document. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { memo, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { TaskJson } from "../../../../../gen/tessera/v1/task_pb.js";
import { useOrganization } from "../../api/session.ts";
import { queuedTaskOf, type TaskName } from "../../api/tasks.ts";
import { between } from "../../ui/duration.ts";
import { DueTime, Time } from "../../ui/time.tsx";
import { useIsNarrow } from "../../ui/use-is-narrow.ts";
import { previewOf } from "./arguments-preview.ts";
import { failureText } from "./failure-text.ts";
import type { TaskSelection } from "./selection.ts";
import { isScheduled, ListedStatus, whyQueued } from "./state.tsx";

/** The heights of a row, as the style sheet has them: one line, and a block on a narrow screen. */
const ROW_PX = 41;
const BLOCK_PX = 88;

/** Rows beyond the view that are there before they are scrolled to. */
const MAX_OVERSCAN = 12;

/** The table asks for more when this many rows are left below the view, and not before anybody scrolls. */
const MIN_ROWS_AHEAD = 30;

/** The columns with the ends of their classes. */
const COLUMNS = [
  ["Task", "id"],
  ["State", "state"],
  ["Endpoint", "endpoint"],
  ["Arguments", "arguments"],
  ["Submitted", "time"],
  ["Ran for", "took number"],
] as const;

interface TaskTableProps {
  readonly selection: TaskSelection;
  readonly tasks: readonly TaskJson[];
  /** They are of several deployments, which are named before the endpoint. */
  readonly ofSeveral: boolean;
  /** They are all of one endpoint, which need not be said in each row. */
  readonly ofOneEndpoint: boolean;
  /** The end is near: what follows may be loaded. */
  onEnd(): void;
}

export function TaskTable(props: TaskTableProps) {
  const { tasks, selection, ofSeveral, ofOneEndpoint, onEnd } = props;
  const box = useRef<HTMLElement>(null);
  const [scrollMargin, setScrollMargin] = useState(0);
  const rowPx = useIsNarrow() ? BLOCK_PX : ROW_PX;
  useLayoutEffect(() => setScrollMargin(box.current?.offsetTop ?? 0), []);
  const virtualizer = useWindowVirtualizer({
    count: tasks.length,
    estimateSize: () => rowPx,
    overscan: MAX_OVERSCAN,
    scrollMargin,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: rows of another height are measured anew
  useLayoutEffect(() => virtualizer.measure(), [rowPx]);
  const rows = virtualizer.getVirtualItems();
  const columns = COLUMNS.length + (ofOneEndpoint ? 0 : 1);
  const first = rows[0]?.index ?? 0;
  const last = rows.at(-1)?.index ?? -1;
  useEffect(() => {
    if (last >= tasks.length - MIN_ROWS_AHEAD) {
      onEnd();
    }
  });
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section className="table-box" aria-label="Tasks" tabIndex={0} ref={box}>
      <table
        className="task-table"
        aria-rowcount={tasks.length + 1}
        data-of-several={ofSeveral || undefined}
        data-of-one-endpoint={ofOneEndpoint || undefined}
      >
        <thead>
          <tr aria-rowindex={1}>
            <td className="task-check">
              <label>
                <input
                  type="checkbox"
                  aria-label="Select all that are shown"
                  checked={selection.size > 0 && selection.size === tasks.length}
                  ref={(input) => {
                    if (input !== null) {
                      input.indeterminate = selection.size > 0 && selection.size < tasks.length;
                    }
                  }}
                  onChange={selection.toggleAll}
                />
                <span className="task-check-words">Select all</span>
              </label>
            </td>
            {COLUMNS.map(([name, of]) => (
              <th key={name} scope="col" className={`task-${of}`}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <Gap px={first * rowPx} columns={columns} />
          {tasks.slice(first, last + 1).map((task, index) => (
            <TaskRow
              key={task.taskId}
              task={task}
              row={first + index + 2}
              ofSeveral={ofSeveral}
              isSelected={selection.has(task.taskId ?? "")}
              onToggle={selection.toggle}
            />
          ))}
          <Gap px={(tasks.length - last - 1) * rowPx} columns={columns} />
        </tbody>
      </table>
    </section>
  );
}

interface GapProps {
  readonly px: number;
  /** Those that are shown: one more would take its part of the width. */
  readonly columns: number;
}

/** In the place of rows out of view. */
function Gap({ px, columns }: GapProps) {
  return px > 0 ? (
    <tr className="gap">
      <td colSpan={columns} style={{ height: px }} />
    </tr>
  ) : null;
}

interface TaskRowProps {
  readonly task: TaskJson;
  /** Its place in the table, from 1, which the heading has. */
  readonly row: number;
  readonly ofSeveral: boolean;
  readonly isSelected: boolean;
  readonly onToggle: TaskSelection["toggle"];
}

/** Rows that stay in view while others come are not made again. */
const TaskRow = memo(function TaskRow(props: TaskRowProps) {
  const { task, row, ofSeveral, isSelected, onToggle } = props;
  const organization = useOrganization();
  const { taskId = "", endpoint, createdAt, startedAt, finishedAt, argumentsPreview = "" } = task;
  const { attempt = 0, tags = [] } = task;
  const deployment = task.deployment?.split("/")[1] ?? "";
  const preview = useMemo(() => previewOf(argumentsPreview), [argumentsPreview]);
  const pointed = usePointed();
  return (
    <tr
      aria-rowindex={row}
      data-row
      tabIndex={-1}
      data-selected={isSelected || undefined}
      {...(task.status === "TASK_STATUS_QUEUED" && pointed.listeners)}
    >
      <td className="task-check">
        <input
          type="checkbox"
          aria-label={`Select ${taskId.slice(-12)}`}
          checked={isSelected}
          onChange={({ nativeEvent }) =>
            onToggle(taskId, (nativeEvent as unknown as MouseEvent).shiftKey === true)
          }
        />
      </td>
      <th scope="row" className="task-id">
        <Link
          to="/o/$organization/deployments/$deployment/tasks/$task"
          params={{ organization, deployment, task: taskId }}
        >
          <code>{taskId.slice(-12)}</code>
        </Link>
      </th>
      <td className="task-state">
        <ListedStatus task={task} />
        {attempt > 1 && <span title={`${attempt} attempts`}> ×{attempt}</span>}
      </td>
      <td className="task-endpoint" title={`${deployment}/${endpoint}`}>
        {ofSeveral && <span className="task-deployment">{deployment}/</span>}
        {endpoint}
      </td>
      <td className="task-arguments">
        <Outcome task={task} />
        {pointed.isPointed && task.status === "TASK_STATUS_QUEUED" && (
          <WhyQueued name={{ organization, deployment, taskId }} />
        )}
        {tags.length > 0 && (
          <span className="task-tags" title={`Tags: ${tags.join(", ")}`}>
            {tags.join(", ")}
          </span>
        )}
        <span title={argumentsPreview}>{preview}</span>
      </td>
      <td className="task-time">{createdAt !== undefined && <Time at={createdAt} />}</td>
      <td className="task-took number">
        {startedAt !== undefined && between(startedAt, finishedAt, Date.now())}
      </td>
    </tr>
  );
});

/** How long a row is pointed at before it is asked about: a pointer that passes asks nothing. */
const POINTED_AFTER_MS = 150;

/** Whether a row is pointed at, or has the focus. */
function usePointed() {
  const [isPointed, setPointed] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const leave = (): void => {
    clearTimeout(timer.current);
    setPointed(false);
  };
  const enter = (): void => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setPointed(true), POINTED_AFTER_MS);
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  const listeners = { onPointerEnter: enter, onPointerLeave: leave, onFocus: enter, onBlur: leave };
  return { isPointed, listeners };
}

/** Why a task is queued, asked for one that somebody points at. */
function WhyQueued({ name }: { readonly name: TaskName }) {
  const { data } = useQuery(queuedTaskOf(name));
  const why = data ? whyQueued(data) : "";
  return (
    why !== "" && (
      <span className="task-outcome" role="status" title={why}>
        {why}
      </span>
    )
  );
}

/** What comes before the arguments of a task: its error, or how far it is where it has not ended. */
function Outcome({ task }: { readonly task: TaskJson }) {
  const { failure, status, progress, runAt } = task;
  if (failure !== undefined) {
    const text = failureText(failure);
    return (
      <span className="task-outcome task-error" title={text}>
        {text}
      </span>
    );
  }
  if (isScheduled(task) && runAt !== undefined) {
    return (
      <span className="task-outcome">
        starts <DueTime at={runAt} />
      </span>
    );
  }
  if (status === "TASK_STATUS_RUNNING" && progress !== undefined) {
    const { fraction, message = "" } = progress;
    const share = typeof fraction === "number" ? `${Math.round(fraction * 100)} % ` : "";
    return <span className="task-outcome">{`${share}${message}`}</span>;
  }
  return null;
}
