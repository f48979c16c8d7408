/** The first page of an organization: what runs, what needs attention, and the first steps. */
import { usePrefetchQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { DeploymentJson } from "../../../../../gen/tessera/v1/deployment_pb.js";
import type {
  TaskPercentilesJson,
  TaskStatsJson,
} from "../../../../../gen/tessera/v1/organization_task_pb.js";
import { messageOf } from "../../api/errors.ts";
import { titleOf, useOrganization, usePerson } from "../../api/session.ts";
import { statsIn, taskStatsOf } from "../../api/task-stats.ts";
import { useDeployments } from "../../api/use-deployments.ts";
import { counted } from "../../ui/counted.ts";
import { duration, durationMs } from "../../ui/duration.ts";
import { Notice } from "../../ui/notice.tsx";
import { Numbers, type PageNumber } from "../../ui/numbers.tsx";
import { Page } from "../../ui/page.tsx";
import { StreamStatus } from "../../ui/stream-status.tsx";
import { LastHour } from "../charts/lazy-hour.tsx";
import { DeploymentState } from "../deployments/state.tsx";
import {
  endedOf,
  failingIn,
  statesText,
  toneOfFailed,
  worstFirst,
} from "../deployments/state-words.ts";
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
  const { data: stats = {}, error } = useQuery(taskStatsOf(name));
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
        <section aria-labelledby="tasks">
          <h2 id="tasks">Tasks of all deployments</h2>
          {error && <Notice kind="error">{messageOf(error)}</Notice>}
          <TaskNumbers stats={stats.total} />
        </section>
      )}
      {deployments.length > 0 && <LastHour organization={name} />}
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

/** The tasks of an organization in numbers: now, and in the last hour. */
function TaskNumbers({ stats }: { readonly stats: TaskStatsJson | undefined }) {
  const { queued = 0, running = 0, oldestQueuedAge } = stats ?? {};
  const { succeeded = 0, failed = 0, cancelled = 0, queueTime, runTime } = stats ?? {};
  const numbers: readonly PageNumber[] = [
    {
      name: "Queued now",
      value: counts.format(queued),
      ...(oldestQueuedAge !== undefined && {
        note: `oldest for ${duration(durationMs(oldestQueuedAge))}`,
      }),
    },
    { name: "Running now", value: counts.format(running) },
    {
      name: "Success (1 h)",
      value: counts.format(succeeded),
    },
    {
      name: "Failure (1 h)",
      value: failed > 0 ? <FailedTasks count={failed} /> : "0",
      ...(cancelled > 0 && { note: `${counts.format(cancelled)} cancelled` }),
      tone: toneOfFailed(failed, endedOf(stats ?? {})),
    },
    { name: "Queue time (1 h)", ...percentiles(queueTime) },
    { name: "Run time (1 h)", ...percentiles(runTime) },
  ];
  return (
    <Numbers
      label="Tasks in numbers"
      numbers={stats ? numbers : numbers.map(({ name }) => ({ name, value: "–", note: "\u00a0" }))}
    />
  );
}

/** The number of failed tasks, as a link to them. */
function FailedTasks({ count }: { readonly count: number }) {
  const organization = useOrganization();
  return (
    <Link
      to="/o/$organization/tasks"
      params={{ organization }}
      search={{ status: "failure", since: "1h" }}
    >
      {counts.format(count)}
    </Link>
  );
}

const counts = new Intl.NumberFormat("en");

/** What half of the tasks took at most, with 95 and 99 of a hundred. */
function percentiles(found: TaskPercentilesJson | undefined): Omit<PageNumber, "name"> {
  const { p50, p95, p99 } = found ?? {};
  if (p50 === undefined || p95 === undefined || p99 === undefined) {
    return { value: "none yet" };
  }
  const [half, most, nearlyAll] = [p50, p95, p99].map((one) => duration(durationMs(one)));
  return { value: half, unit: "p50", note: `p95 ${most} · p99 ${nearlyAll}` };
}
