/** A table of tasks, of which only the rows in view are in the document. */
import { Link } from "@tanstack/react-router";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useLayoutEffect, useRef, useState } from "react";
import type { TaskJson } from "../../../../../gen/tessera/v1/task_pb.js";
import { useOrganization } from "../../api/session.ts";
import { useShortcut } from "../../shell/keys.ts";
import { between } from "../../ui/duration.ts";
import { Time } from "../../ui/time.tsx";
import type { TaskSelection } from "./selection.ts";
import { reasonOf, TaskStatus } from "./state.tsx";

/** The height of a row, as the style sheet has it. */
const ROW_PX = 41;

/** Rows beyond the view that are there before they are scrolled to. */
const MAX_OVERSCAN = 12;

/** Those of the table with the column of the deployment. */
const MAX_COLUMNS = 8;

interface TaskTableProps {
  readonly selection: TaskSelection;
  readonly tasks: readonly TaskJson[];
  /** They are of several deployments, which a column names. */
  readonly ofSeveral?: boolean;
}

export function TaskTable({ tasks, selection, ofSeveral = false }: TaskTableProps) {
  const box = useRef<HTMLElement>(null);
  const [scrollMargin, setScrollMargin] = useState(0);
  useLayoutEffect(() => setScrollMargin(box.current?.offsetTop ?? 0), []);
  const virtualizer = useWindowVirtualizer({
    count: tasks.length,
    estimateSize: () => ROW_PX,
    overscan: MAX_OVERSCAN,
    scrollMargin,
  });
  useShortcut("x", () => {
    const row = document.activeElement?.closest<HTMLElement>("[data-task]");
    if (row?.dataset.task !== undefined) {
      selection.toggle(row.dataset.task, false);
    }
  });
  const rows = virtualizer.getVirtualItems();
  const first = rows[0]?.index ?? 0;
  const last = rows.at(-1)?.index ?? -1;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section className="table-box" aria-label="Tasks" tabIndex={0} ref={box}>
      <table className="task-table" aria-rowcount={tasks.length + 1}>
        <thead>
          <tr aria-rowindex={1}>
            <td className="task-check">
              <input
                type="checkbox"
                aria-label="Select all that are shown"
                checked={selection.size === tasks.length}
                ref={(input) => {
                  if (input !== null) {
                    input.indeterminate = selection.size > 0 && selection.size < tasks.length;
                  }
                }}
                onChange={selection.toggleAll}
              />
            </td>
            <th scope="col">Task</th>
            <th scope="col">State</th>
            {ofSeveral && <th scope="col">Deployment</th>}
            <th scope="col">Endpoint</th>
            <th scope="col">Submitted</th>
            <th scope="col">Ran for</th>
            <th scope="col">Attempt</th>
          </tr>
        </thead>
        <tbody>
          <Gap rows={first} />
          {tasks.slice(first, last + 1).map((task, index) => (
            <TaskRow
              key={task.taskId}
              task={task}
              row={first + index + 2}
              ofSeveral={ofSeveral}
              selection={selection}
            />
          ))}
          <Gap rows={tasks.length - last - 1} />
        </tbody>
      </table>
    </section>
  );
}

/** In the place of rows out of view. */
function Gap({ rows }: { readonly rows: number }) {
  return rows > 0 ? (
    <tr>
      <td className="gap" colSpan={MAX_COLUMNS} style={{ height: rows * ROW_PX }} />
    </tr>
  ) : null;
}

interface TaskRowProps {
  readonly task: TaskJson;
  /** Its place in the table, from 1, which the heading has. */
  readonly row: number;
  readonly ofSeveral: boolean;
  readonly selection: TaskSelection;
}

function TaskRow({ task, row, ofSeveral, selection }: TaskRowProps) {
  const organization = useOrganization();
  const { taskId = "", status, endpoint, createdAt, startedAt, finishedAt, failure } = task;
  const deployment = task.deployment?.split("/")[1] ?? "";
  const isSelected = selection.has(taskId);
  return (
    <tr aria-rowindex={row} data-task={taskId} data-selected={isSelected || undefined}>
      <td className="task-check">
        <input
          type="checkbox"
          aria-label={`Select ${taskId.slice(-12)}`}
          checked={isSelected}
          onChange={({ nativeEvent }) =>
            selection.toggle(taskId, (nativeEvent as unknown as MouseEvent).shiftKey === true)
          }
        />
      </td>
      <th scope="row">
        <Link
          to="/o/$organization/deployments/$deployment/tasks/$task"
          params={{ organization, deployment, task: taskId }}
        >
          <code>{taskId.slice(-12)}</code>
        </Link>
      </th>
      <td>
        <TaskStatus status={status} />
        {failure !== undefined && (
          <span className="task-failure" title={failure.message}>
            {failure.message || reasonOf(failure.reason)}
          </span>
        )}
      </td>
      {ofSeveral && <td>{deployment}</td>}
      <td>{endpoint}</td>
      <td>{createdAt !== undefined && <Time at={createdAt} />}</td>
      <td>{startedAt !== undefined && between(startedAt, finishedAt, Date.now())}</td>
      <td>{task.attempt || ""}</td>
    </tr>
  );
}
