/** What else failed as a task did. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { TaskJson } from "../../../../../gen/tessera/v1/task_pb.js";
import { errorTextOf, failuresLike, MAX_TASKS_PER_PAGE, type TaskName } from "../../api/tasks.ts";
import { counted } from "../../ui/counted.ts";

interface AlikeFailuresProps {
  readonly name: TaskName;
  readonly task: TaskJson;
}

/** A line with how many tasks failed with the same message in the last hour; nothing for none. */
export function AlikeFailures({ name, task }: AlikeFailuresProps) {
  const { organization, deployment } = name;
  const { data: count = 0 } = useQuery(failuresLike(name, task));
  if (count === 0) {
    return null;
  }
  const others =
    count < MAX_TASKS_PER_PAGE - 1
      ? counted(count, "other task")
      : `${MAX_TASKS_PER_PAGE - 1} other tasks or more`;
  return (
    <p className="secondary">
      <Link
        to="/o/$organization/tasks"
        params={{ organization }}
        search={{ status: "failure", deployment, error: errorTextOf(task) }}
      >
        {others}
      </Link>{" "}
      failed so in the last hour.
    </p>
  );
}
