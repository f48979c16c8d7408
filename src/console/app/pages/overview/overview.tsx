/** The first page of an organization: what runs, what needs attention, and the first steps. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import type { TaskStatsJson } from "../../../../../gen/tessera/v1/organization_task_pb.js";
import { messageOf } from "../../api/errors.ts";
import { loaded } from "../../api/loaded.ts";
import { titleOf, useOrganization, usePerson } from "../../api/session.ts";
import { statsIn, taskStatsOf } from "../../api/task-stats.ts";
import { useDeployments } from "../../api/use-deployments.ts";
import { Command } from "../../ui/command.tsx";
import { counted } from "../../ui/counted.ts";
import { Loading } from "../../ui/loading.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Page } from "../../ui/page.tsx";
import { StreamStatus } from "../../ui/stream-status.tsx";
import { DeploymentState } from "../deployments/state.tsx";
import { Attention } from "./attention.tsx";
import { TaskNumbers } from "./task-numbers.tsx";

/** With what draws charts, which other pages do not need. */
const LastHour = lazy(() => loaded(import("./last-hour.tsx")));

export function Overview() {
  const name = useOrganization();
  const { organization } = usePerson();
  const { deployments, stream } = useDeployments(name);
  const { data: stats = {}, error } = useQuery(taskStatsOf(name));
  return (
    <Page
      title={titleOf(organization ?? { name })}
      description="What runs here."
      actions={<StreamStatus state={stream} />}
    >
      <section aria-labelledby="attention">
        <h2 id="attention">Needs attention</h2>
        <Attention deployments={deployments} stats={stats} />
      </section>
      <section aria-labelledby="deployments">
        <h2 id="deployments">Deployments</h2>
        <ul className="cards">
          {deployments.map((one) => (
            <li key={one.deploymentId} className="card">
              <Link
                to="/o/$organization/deployments/$deployment"
                params={{ organization: name, deployment: one.name ?? "" }}
              >
                {one.name}
              </Link>
              <DeploymentState deployment={one} />
              <span className="secondary">
                {counted(one.workers, "worker")} on {counted(one.nodes, "node")}
              </span>
              <span className="secondary">{queueText(statsIn(stats, one.name))}</span>
            </li>
          ))}
        </ul>
      </section>
      {deployments.length > 0 && (
        <section aria-labelledby="tasks">
          <h2 id="tasks">Tasks of the last hour</h2>
          {error && <Notice kind="error">{messageOf(error)}</Notice>}
          {stats.total !== undefined && <TaskNumbers stats={stats.total} />}
        </section>
      )}
      {deployments.length > 0 && (
        <section aria-labelledby="hour">
          <h2 id="hour">Over the last hour</h2>
          <Suspense fallback={<Loading />}>
            <LastHour />
          </Suspense>
        </section>
      )}
      <section aria-labelledby="steps">
        <h2 id="steps">On the command line</h2>
        <Command text={`npx tessera-platform cloud login --endpoint ${location.origin}`} />
        <Command text="npx tessera-platform deploy service.ts" />
        <p className="secondary">
          Whatever is done here can be done by programs:{" "}
          <Link to="/reference">the reference of the API</Link>.
        </p>
      </section>
    </Page>
  );
}

/** Such as `12 tasks wait, 3 run`. */
function queueText({ queued = 0, running = 0 }: TaskStatsJson): string {
  return queued + running === 0
    ? "no task waits or runs"
    : `${counted(queued, "task")} ${queued === 1 ? "waits" : "wait"}, ${running} ${running === 1 ? "runs" : "run"}`;
}
