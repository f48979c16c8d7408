/** What a task is related to: its schedule, retries, webhooks, and others that failed as it did. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { TaskJson } from "../../../../../gen/tessera/v1/task_pb.js";
import { answerOf, deliveryStateOf } from "../../api/deliveries.ts";
import {
  errorTextOf,
  failuresLike,
  hasEnded,
  MAX_TASKS_PER_PAGE,
  retriesOf,
  type TaskName,
} from "../../api/tasks.ts";
import { deliveriesOfTask } from "../../api/webhooks.ts";
import { counted } from "../../ui/counted.ts";
import { DELIVERY_TONES } from "../../ui/deliveries.tsx";
import { Status } from "../../ui/status.tsx";
import { TaskLink } from "./task-link.tsx";

interface RelatedProps {
  readonly name: TaskName;
  readonly task: TaskJson;
}

/** What a task retries, and the tasks that retry it. */
export function Retries({ name, task }: RelatedProps) {
  const { data: retries = [] } = useQuery({ ...retriesOf(name), enabled: hasEnded(task) });
  return (
    <>
      {task.retryOf && (
        <span>
          retry of <TaskLink name={{ ...name, taskId: task.retryOf }} />
        </span>
      )}
      {retries.map(({ taskId = "" }) => (
        <span key={taskId}>
          retried as <TaskLink name={{ ...name, taskId }} />
        </span>
      ))}
    </>
  );
}

/** The schedule that submitted it, with the way to it. */
export function OfSchedule({ name: { organization, deployment }, task }: RelatedProps) {
  return (
    task.schedule && (
      <Link
        to="/o/$organization/deployments/$deployment/schedules"
        params={{ organization, deployment }}
      >
        schedule {task.schedule}
      </Link>
    )
  );
}

/** Whose it is among the callers of its endpoint, with the way to the others of the same. */
export function OfKey({ name: { organization, deployment }, task: { key } }: RelatedProps) {
  return (
    key && (
      <Link to="/o/$organization/tasks" params={{ organization }} search={{ deployment, key }}>
        key {key}
      </Link>
    )
  );
}

/** Its tags, each with the way to all tasks of the organization that have it. */
export function Tags({ name: { organization }, task: { tags = [] } }: RelatedProps) {
  return tags.map((tag) => (
    <Link
      key={tag}
      className="task-tag"
      to="/o/$organization/tasks"
      params={{ organization }}
      search={{ tags: tag }}
      title={`All tasks with the tag ${tag}`}
    >
      {tag}
    </Link>
  ));
}

/** The deliveries of its end to webhooks, each with its state; nothing where none was. */
export function Told({ name, task }: RelatedProps) {
  const { organization, deployment } = name;
  const { data: deliveries = [] } = useQuery({
    ...deliveriesOfTask(name),
    enabled: hasEnded(task),
  });
  return deliveries.map(({ id, webhook = "", ...rest }) => (
    <Link
      key={id}
      to="/o/$organization/deployments/$deployment/webhooks/$webhook"
      params={{ organization, deployment, webhook }}
      className="task-tag"
      title={answerOf(rest)}
    >
      <Status tone={DELIVERY_TONES[deliveryStateOf(rest)] ?? "idle"}>
        {`webhook ${webhook}: ${deliveryStateOf(rest)}`}
      </Status>
    </Link>
  ));
}

/** How many tasks failed with the same message in the last hour, with the way to them; nothing for none. */
export function AlikeFailures({ name, task }: RelatedProps) {
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
    <p className="alike">
      <Link
        to="/o/$organization/tasks"
        params={{ organization }}
        search={{ status: "failure", deployment, error: errorTextOf(task) }}
      >
        {others} failed with this error in the last hour
      </Link>
    </p>
  );
}
