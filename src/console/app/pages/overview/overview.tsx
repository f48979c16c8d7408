/** The first page of an organization: what runs, what needs attention, and the first steps. */
import { usePrefetchQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { DeploymentJson } from "../../../../../gen/tessera/v1/deployment_pb.js";
import type { TaskStatsJson } from "../../../../../gen/tessera/v1/organization_task_pb.js";
import { messageOf } from "../../api/errors.ts";
import { titleOf, useOrganization, usePerson } from "../../api/session.ts";
import { statsIn, taskStatsOf } from "../../api/task-stats.ts";
import { useDeployments } from "../../api/use-deployments.ts";
import { counted } from "../../ui/counted.ts";
import { Notice } from "../../ui/notice.tsx";
import { Page } from "../../ui/page.tsx";
import { StreamStatus } from "../../ui/stream-status.tsx";
import { LastHour } from "../charts/lazy-hour.tsx";
import { HourNumbers } from "../deployments/hour-numbers.tsx";
import { DeploymentState } from "../deployments/state.tsx";
import { failingIn, statesText, worstFirst } from "../deployments/state-words.ts";
import { Attention } from "./attention.tsx";
import { useConcerns } from "./concerns.ts";
import { FirstSteps } from "./first-steps.tsx";
import "./overview.css";

/** Deployments that are listed here: the page of all has the rest. */
const MAX_LISTED = 20;

export function Overview() {
  const name = useOrganization();
  const { organization } = usePerson();
  usePrefetchQuery(taskStatsOf(name));
  const { deployments, stream } = useDeployments(name);
  const { data, error } = useQuery(taskStatsOf(name));
  const stats = data ?? {};
  const failing = failingIn(stats);
  const concerns = useConcerns(deployments, stats);
  return (
    <Page
      title={titleOf(organization ?? { name })}
      description={summaryOf(deployments, failing, concerns.length)}
      actions={<StreamStatus state={stream} />}
    >
      {deployments.length === 0 && <FirstSteps deployments={deployments} stats={stats} />}
      <div className="overview-lists">
        {deployments.length > 0 && (
          <section aria-labelledby="attention">
            <h2 id="attention">Needs attention</h2>
            <Attention concerns={concerns} />
          </section>
        )}
        <section aria-labelledby="deployments">
          <h2 id="deployments">Deployments</h2>
          {deployments.length === 0 && <p className="secondary">None yet.</p>}
          {deployments.length > 0 && (
            <ul className="rows">
              {worstFirst(deployments, failing)
                .slice(0, MAX_LISTED)
                .map((one) => (
                  <li key={one.deploymentId}>
                    <Link
                      to="/o/$organization/deployments/$deployment"
                      params={{ organization: name, deployment: one.name ?? "" }}
                    >
                      {one.name}
                    </Link>
                    <span className="row-state">
                      <DeploymentState deployment={one} failing={failing} />
                    </span>
                    <span className="secondary row-end">
                      {counted(one.workers, "worker")} · {queueText(statsIn(stats, one.name))}
                    </span>
                  </li>
                ))}
            </ul>
          )}
          {deployments.length > MAX_LISTED && (
            <p>
              <Link to="/o/$organization/deployments" params={{ organization: name }}>
                All {deployments.length} deployments
              </Link>
            </p>
          )}
        </section>
      </div>
      {deployments.length > 0 && (
        <section aria-labelledby="hour" className="hour">
          <h2 id="hour">Last hour</h2>
          {error && <Notice kind="error">{messageOf(error)}</Notice>}
          <HourNumbers of={data} />
          <LastHour organization={name} />
        </section>
      )}
      {deployments.length > 0 && <FirstSteps deployments={deployments} stats={stats} />}
      <p className="secondary">
        Whatever is done here can be done by programs:{" "}
        <Link to="/reference">the reference of the API</Link>.
      </p>
    </Page>
  );
}

/** Such as `2 need attention · 2 of 3 deployments ready, 1 failing`. */
function summaryOf(
  deployments: readonly DeploymentJson[],
  failing: readonly string[],
  concerns: number,
): string {
  if (deployments.length === 0) {
    return "No deployments yet.";
  }
  const attention =
    concerns === 0 ? "All runs well" : `${concerns} ${concerns === 1 ? "needs" : "need"} attention`;
  return `${attention} · ${statesText(deployments, failing)}`;
}

/** Such as `12 queued, 3 running`. */
function queueText({ queued = 0, running = 0 }: TaskStatsJson): string {
  return queued + running === 0 ? "idle" : `${queued} queued, ${running} running`;
}
