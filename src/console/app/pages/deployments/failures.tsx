/** Why tasks of a deployment failed in the last hour: a row for each cause, with links to its tasks. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useOrganization } from "../../api/session.ts";
import { errorTextOf, MAX_TASKS_PER_PAGE, newestFailuresOf } from "../../api/tasks.ts";
import { counted } from "../../ui/counted.ts";
import { Time } from "../../ui/time.tsx";
import { TaskLink } from "../tasks/task-link.tsx";
import { type Cause, causesOf } from "./causes.ts";
import "./failures.css";

/** Causes that are listed: the list of failed tasks has the rest. */
const MAX_CAUSES = 4;

/** Tasks of a cause that are named. */
const MAX_TASKS = 3;

/** Renders nothing without a failed task. */
export function Failures({ name }: { readonly name: string }) {
  const organization = useOrganization();
  const { data: failed = [] } = useQuery(newestFailuresOf(organization, name));
  const causes = causesOf(failed);
  if (causes.length === 0) {
    return null;
  }
  const isPart = failed.length >= MAX_TASKS_PER_PAGE || causes.length > MAX_CAUSES;
  return (
    <section aria-labelledby="failures">
      <h3 id="failures">Why tasks failed</h3>
      <ul className="failure-rows">
        {causes.slice(0, MAX_CAUSES).map((cause) => (
          <CauseRow key={cause.text} of={cause} deployment={name} />
        ))}
      </ul>
      {isPart && (
        <p className="secondary">
          The newest ones.{" "}
          <Link
            to="/o/$organization/deployments/$deployment/tasks"
            params={{ organization, deployment: name }}
            search={{ status: "failure", since: "1h" }}
          >
            All that failed in the last hour
          </Link>
        </p>
      )}
    </section>
  );
}

interface CauseRowProps {
  readonly of: Cause;
  readonly deployment: string;
}

function CauseRow({ of: { text, tasks, endpoints }, deployment }: CauseRowProps) {
  const organization = useOrganization();
  const [newest = {}] = tasks;
  const error = errorTextOf(newest);
  return (
    <li>
      <p className="failure-text" title={text}>
        {text}
      </p>
      <p className="secondary">
        <Link
          to="/o/$organization/deployments/$deployment/tasks"
          params={{ organization, deployment }}
          search={{ status: "failure", since: "1h", ...(error !== "" && { error }) }}
        >
          {counted(tasks.length, "task")}
        </Link>{" "}
        of <bdi>{endpoints.join(", ")}</bdi>
        {newest.finishedAt !== undefined && (
          <>
            , last <Time at={newest.finishedAt} />
          </>
        )}
      </p>
      <ul className="failure-tasks">
        {tasks.slice(0, MAX_TASKS).map(({ taskId = "" }) => (
          <li key={taskId}>
            <TaskLink name={{ organization, deployment, taskId }} />
          </li>
        ))}
      </ul>
    </li>
  );
}
