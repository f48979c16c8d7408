/** The first page of an organization: what runs, what needs attention, and the first steps. */
import { useQueries, useQuery } from "@tanstack/react-query";
import { Link, lazyRouteComponent } from "@tanstack/react-router";
import { Suspense } from "react";
import type { DeploymentJson } from "../../../../../gen/tessera/v1/deployment_pb.js";
import type { QueryMetricsResponseJson } from "../../../../../gen/tessera/v1/metrics_pb.js";
import type {
  GetTaskStatsResponseJson,
  TaskPercentilesJson,
  TaskStatsJson,
} from "../../../../../gen/tessera/v1/organization_task_pb.js";
import { alertsOf } from "../../api/alerts.ts";
import { metrics } from "../../api/clients.ts";
import { messageOf } from "../../api/errors.ts";
import { loaded } from "../../api/loaded.ts";
import { titleOf, useOrganization, usePerson } from "../../api/session.ts";
import { durationMs, statsIn, taskStatsOf } from "../../api/task-stats.ts";
import { useDeployments } from "../../api/use-deployments.ts";
import { counted } from "../../ui/counted.ts";
import { duration } from "../../ui/duration.ts";
import { numbersOf } from "../../ui/line.ts";
import { Loading } from "../../ui/loading.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Numbers, type PageNumber } from "../../ui/numbers.tsx";
import { Page } from "../../ui/page.tsx";
import { percent } from "../../ui/quantity.ts";
import { Status } from "../../ui/status.tsx";
import { StreamStatus } from "../../ui/stream-status.tsx";
import { DeploymentState } from "../deployments/state.tsx";
import { FirstSteps } from "./first-steps.tsx";
import "./overview.css";

/** Of calls that failed, this share is worth more than a warning. */
const MIN_BAD_SHARE = 0.05;

/** A task that has waited longer than this is worth a look. */
const LONG_WAIT_MS = 300_000;

/** Deployments that are listed here: the page of all has the rest. */
const MAX_LISTED = 20;

/** How often it is asked what fires. */
const ALERTS_REFRESH_MS = 30_000;

/** Firing alerts that are named here: the page of alerts has the rest. */
const MAX_NAMED_ALERTS = 3;

/** With what draws charts, which other pages do not need. */
const LastHour = lazyRouteComponent(() => loaded(import("./last-hour.tsx")));

export function Overview() {
  const name = useOrganization();
  const { organization } = usePerson();
  const { deployments, stream } = useDeployments(name);
  const { data: stats = {}, error } = useQuery(taskStatsOf(name));
  return (
    <Page
      title={titleOf(organization ?? { name })}
      description={summaryOf(deployments)}
      actions={<StreamStatus state={stream} />}
    >
      {deployments.length === 0 && <FirstSteps deployments={deployments} stats={stats} />}
      <div className="overview-lists">
        {deployments.length > 0 && (
          <section aria-labelledby="attention">
            <h2 id="attention">Needs attention</h2>
            <Attention deployments={deployments} stats={stats} />
          </section>
        )}
        <section aria-labelledby="deployments">
          <h2 id="deployments">Deployments</h2>
          {deployments.length === 0 && <p className="secondary">None yet.</p>}
          {deployments.length > 0 && (
            <ul className="rows">
              {deployments.slice(0, MAX_LISTED).map((one) => (
                <li key={one.deploymentId}>
                  <Link
                    to="/o/$organization/deployments/$deployment"
                    params={{ organization: name, deployment: one.name ?? "" }}
                  >
                    {one.name}
                  </Link>
                  <span className="row-state">
                    <DeploymentState deployment={one} />
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
          <h2 id="tasks">Tasks of the last hour</h2>
          {error && <Notice kind="error">{messageOf(error)}</Notice>}
          <TaskNumbers stats={stats.total} />
        </section>
      )}
      {deployments.length > 0 && (
        <section aria-labelledby="hour">
          <h2 id="hour">Trends</h2>
          <Suspense fallback={<Loading />}>
            <LastHour />
          </Suspense>
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

/** Such as `3 deployments, all ready`. */
function summaryOf(deployments: readonly DeploymentJson[]): string {
  const ready = deployments.filter(({ status }) => status === "DEPLOYMENT_STATUS_READY").length;
  const all = counted(deployments.length, "deployment");
  if (deployments.length === 0) {
    return "No deployments yet.";
  }
  return ready === deployments.length
    ? `${all}, ${ready === 1 ? "" : "all "}ready`
    : `${all}, ${ready} ready`;
}

/** Such as `12 queued, 3 running`. */
function queueText({ queued = 0, running = 0 }: TaskStatsJson): string {
  return queued + running === 0 ? "idle" : `${queued} queued, ${running} running`;
}

/** The tasks of an organization in numbers: now, and in the last hour. */
function TaskNumbers({ stats }: { readonly stats: TaskStatsJson | undefined }) {
  const { queued = 0, running = 0, oldestQueuedAge, finishedPerMinute = 0 } = stats ?? {};
  const { succeeded = 0, failed = 0, cancelled = 0, queueTime, runTime } = stats ?? {};
  const numbers: readonly PageNumber[] = [
    {
      name: "Queued",
      value: counts.format(queued),
      ...(oldestQueuedAge !== undefined && {
        note: `oldest for ${duration(durationMs(oldestQueuedAge))}`,
      }),
    },
    { name: "Running", value: counts.format(running) },
    {
      name: "Success",
      value: counts.format(succeeded),
      note: `${rates.format(Number(finishedPerMinute))} per minute`,
    },
    {
      name: "Failure",
      value: counts.format(failed),
      ...(cancelled > 0 && { note: `${counts.format(cancelled)} cancelled` }),
      isBad: failed > 0,
    },
    { name: "Time in the queue", ...percentiles(queueTime) },
    { name: "Run time", ...percentiles(runTime) },
  ];
  return (
    <Numbers
      label="In numbers"
      numbers={stats ? numbers : numbers.map(({ name }) => ({ name, value: "–", note: "\u00a0" }))}
    />
  );
}

const counts = new Intl.NumberFormat("en");
const rates = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });

/** What half of the tasks took at most, with 95 and 99 of a hundred. */
function percentiles(found: TaskPercentilesJson | undefined): Omit<PageNumber, "name"> {
  const { p50, p95, p99 } = found ?? {};
  if (p50 === undefined || p95 === undefined || p99 === undefined) {
    return { value: "none yet" };
  }
  const [half = "", most, nearlyAll] = [p50, p95, p99].map((one) =>
    duration(durationMs(one)).replaceAll(" ", "\u00a0"),
  );
  return { value: half, note: `p50 · p95\u00a0${most} · p99\u00a0${nearlyAll}` };
}

/** What needs attention: deployments that do not run well, their calls and their tasks. */
interface Concern {
  readonly deployment: DeploymentJson;
  readonly isUnwell: boolean;
  readonly failed: number;
  /** Of calls, from 0 to 1; undefined where none failed. */
  readonly failedShare: number | undefined;
  /** Undefined while no task waits for long. */
  readonly waitedMs: number | undefined;
}

function Attention({
  deployments,
  stats,
}: {
  readonly deployments: readonly DeploymentJson[];
  readonly stats: GetTaskStatsResponseJson;
}) {
  const organization = useOrganization();
  const failedCalls = useFailedCalls(deployments.map(({ name = "" }) => name));
  const concerns = deployments
    .map((deployment) => concernOf(deployment, stats, failedCalls))
    .filter(
      ({ isUnwell, failed, failedShare, waitedMs }) =>
        isUnwell || failed > 0 || failedShare !== undefined || waitedMs !== undefined,
    );
  const firing = useFiring();
  if (concerns.length + firing.length === 0) {
    return <p className="secondary">Nothing: all deployments run well.</p>;
  }
  const worstFirst = concerns.toSorted((one, other) => Number(isBad(other)) - Number(isBad(one)));
  return (
    <>
      <ul className="rows">
        {firing.length > 0 && (
          <li>
            <Status tone="bad">{counted(firing.length, "alert")}</Status>
            <span className="row-why">
              <Link to="/o/$organization/alerts" params={{ organization }}>
                {firing.slice(0, MAX_NAMED_ALERTS).join(", ")}
                {firing.length > MAX_NAMED_ALERTS && " …"}
              </Link>
            </span>
          </li>
        )}
        {worstFirst.slice(0, MAX_LISTED).map((one) => (
          <li key={one.deployment.deploymentId}>
            <Status tone={isBad(one) ? "bad" : "warning"}>{one.deployment.name ?? ""}</Status>
            <Why concern={one} />
          </li>
        ))}
      </ul>
      {concerns.length > MAX_LISTED && (
        <p className="secondary">And {concerns.length - MAX_LISTED} more.</p>
      )}
    </>
  );
}

/** What the alerts are about that fire, newest first. */
function useFiring(): readonly string[] {
  const asked = alertsOf(useOrganization(), true);
  const { data = [] } = useQuery({ ...asked, refetchInterval: ALERTS_REFRESH_MS });
  return data.map(({ subject = "" }) => subject);
}

const isBad = ({ deployment: { status }, failed, failedShare }: Concern): boolean =>
  status === "DEPLOYMENT_STATUS_FAILED" || failed > 0 || (failedShare ?? 0) >= MIN_BAD_SHARE;

function Why({
  concern: { deployment, isUnwell, failed, failedShare, waitedMs },
}: {
  concern: Concern;
}) {
  const params = { organization: useOrganization(), deployment: deployment.name ?? "" };
  return (
    <span className="row-why">
      {isUnwell && <DeploymentState deployment={deployment} />}
      {failedShare !== undefined && (
        <Link to="/o/$organization/deployments/$deployment/metrics" params={params}>
          {percent(failedShare)} of calls failed in the last hour
        </Link>
      )}
      {failed > 0 && (
        <Link
          to="/o/$organization/tasks"
          params={params}
          search={{ deployment: params.deployment, status: "failure" }}
        >
          {counted(failed, "task")} failed in the last hour
        </Link>
      )}
      {waitedMs !== undefined && (
        <Link
          to="/o/$organization/tasks"
          params={params}
          search={{ deployment: params.deployment, status: "queued" }}
        >
          The oldest task has waited for {duration(waitedMs)}
        </Link>
      )}
    </span>
  );
}

function concernOf(
  deployment: DeploymentJson,
  all: GetTaskStatsResponseJson,
  failedCalls: ReadonlyMap<string, number>,
): Concern {
  const { status, name = "" } = deployment;
  const { failed = 0, oldestQueuedAge } = statsIn(all, name);
  const waitedMs = oldestQueuedAge === undefined ? 0 : durationMs(oldestQueuedAge);
  return {
    deployment,
    isUnwell: status === "DEPLOYMENT_STATUS_FAILED" || status === "DEPLOYMENT_STATUS_DEGRADED",
    failed,
    failedShare: failedCalls.get(name),
    waitedMs: waitedMs > LONG_WAIT_MS ? waitedMs : undefined,
  };
}

// Of the deployments that answered calls with errors in the last hour, the share of those calls.

/** Deployments that are asked about: an answer is of one, and a page of all asks for many. */
const MAX_ASKED = 30;
/** How often they are asked about again. */
const REFRESH_MS = 30_000;
/** All of an hour in steps of ten seconds: longer steps have nothing of the last minute. */
const MAX_POINTS = 360;

/** By the name of the deployment, from 0 to 1; those without an error are left out. */
function useFailedCalls(deployments: readonly string[]): ReadonlyMap<string, number> {
  const organization = useOrganization();
  const asked = deployments.slice(0, MAX_ASKED);
  const answers = useQueries({
    queries: asked.map((deployment) => ({
      queryKey: ["metrics", organization, deployment, "failed-calls"],
      queryFn: ({ signal }: { readonly signal: AbortSignal }) =>
        metrics.queryMetrics(
          {
            organization,
            deployment,
            metrics: ["METRIC_CALLS", "METRIC_CALL_ERRORS"],
            maxPoints: MAX_POINTS,
          },
          { signal },
        ),
      refetchInterval: REFRESH_MS,
    })),
  });
  return new Map(
    asked.flatMap((deployment, index): [string, number][] => {
      const { data } = answers[index] ?? {};
      const share = data === undefined ? 0 : sumOf(data, "call_errors") / sumOf(data, "calls");
      return share > 0 ? [[deployment, share]] : [];
    }),
  );
}

/** The sum of a series, of what is known. */
const sumOf = ({ series = [] }: QueryMetricsResponseJson, name: string): number =>
  numbersOf(series.find((one) => one.name === name && !one.custom)?.values).reduce<number>(
    (sum, value) => sum + (value ?? 0),
    0,
  );
