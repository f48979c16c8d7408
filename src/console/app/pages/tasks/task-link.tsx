/** A link to a task, which shows what tells its id from those of the same time. */
import { Link } from "@tanstack/react-router";
import type { TaskName } from "../../api/tasks.ts";

export function TaskLink({ name: { taskId, ...params } }: { readonly name: TaskName }) {
  return (
    <Link
      to="/o/$organization/deployments/$deployment/tasks/$task"
      params={{ ...params, task: taskId }}
      title={taskId}
    >
      <code>{taskId.slice(-12)}</code>
    </Link>
  );
}
