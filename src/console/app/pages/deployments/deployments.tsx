/** The deployments of an organization. */
import { usePrefetchQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { DeploymentJson } from "../../../../../gen/tessera/v1/deployment_pb.js";
import type { TaskStatsJson } from "../../../../../gen/tessera/v1/organization_task_pb.js";
import { useOrganization } from "../../api/session.ts";
import { statsIn, statsOf, taskStatsOf } from "../../api/task-stats.ts";
import { useDeployments } from "../../api/use-deployments.ts";
import { Button } from "../../ui/button.tsx";
import { Command } from "../../ui/command.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { Empty } from "../../ui/empty.tsx";
import { useFinder } from "../../ui/finder.tsx";
import { Page } from "../../ui/page.tsx";
import { count, percent } from "../../ui/quantity.ts";
import { StreamStatus } from "../../ui/stream-status.tsx";
import { Time } from "../../ui/time.tsx";
import { DeploymentState } from "./state.tsx";
import { endedOf, failingIn, statesText, toneOfFailed, worstFirst } from "./state-words.ts";
import "./deployments.css";

/** Deployments that are shown at first: an organization may have thousands. */
const MAX_SHOWN_DEPLOYMENTS = 100;

export function Deployments() {
  const organization = useOrganization();
  usePrefetchQuery(taskStatsOf(organization));
  const { deployments, stream } = useDeployments(organization);
  const { data: stats } = useQuery(taskStatsOf(organization));
  const failing = failingIn(stats ?? {});
  const [isDeploying, setDeploying] = useState(false);
  const { shown, field, rest } = useFinder(worstFirst(deployments, failing), {
    noun: "deployments",
    maxShown: MAX_SHOWN_DEPLOYMENTS,
    nameOf: ({ name }) => name,
  });
  return (
    <Page
      title="Deployments"
      description={
        deployments.length === 0
          ? "Services that this organization runs here."
          : statesText(deployments, failing)
      }
      actions={
        <>
          <StreamStatus state={stream} />
          {deployments.length > 0 && (
            <Button
              kind="primary"
              aria-expanded={isDeploying}
              onClick={() => setDeploying(!isDeploying)}
            >
              Deploy
            </Button>
          )}
        </>
      }
    >
      {deployments.length === 0 ? (
        <Empty inPage title="Nothing is deployed yet">
          <HowToDeploy />
        </Empty>
      ) : (
        <>
          {isDeploying && (
            <section className="card" aria-label="How to deploy">
              <HowToDeploy />
            </section>
          )}
          {field}
          <div className="deployment-list">
            <DataTable
              label="Deployments, failing first"
              items={shown}
              keyOf={({ deploymentId = "" }) => deploymentId}
              columns={[
                {
                  name: "Name",
                  cell: ({ name = "", revision, authorization }) => (
                    <>
                      <DeploymentLink name={name} />
                      <span className="secondary whole">
                        {revision ? `r${revision}` : "no revision"},{" "}
                        {authorization ? "protected" : "public"}
                      </span>
                    </>
                  ),
                },
                {
                  name: "State",
                  cell: (one) => <DeploymentState deployment={one} failing={failing} />,
                },
                {
                  name: "Failed tasks (1 h)",
                  isNumber: true,
                  cell: ({ name = "" }) =>
                    stats && <FailedTasks name={name} of={statsIn(stats, name)} />,
                },
                {
                  name: "Call errors (1 h)",
                  isNumber: true,
                  cell: ({ name = "" }) =>
                    stats && <ErrorRate name={name} {...statsOf(stats, name)} />,
                },
                {
                  name: "Calls (1 h)",
                  isNumber: true,
                  cell: ({ name }) => stats && <Count of={statsOf(stats, name).calls ?? 0} />,
                },
                {
                  name: "Queued",
                  isNumber: true,
                  cell: ({ name }) => stats && <Count of={statsIn(stats, name).queued ?? 0} />,
                },
                {
                  name: "Running",
                  isNumber: true,
                  cell: ({ name }) => stats && <Count of={statsIn(stats, name).running ?? 0} />,
                },
                { name: "Workers", cell: (one) => <Workers of={one} /> },
                {
                  name: "Changed",
                  cell: ({ updatedAt }) => updatedAt !== undefined && <Time at={updatedAt} />,
                },
              ]}
            />
          </div>
          {rest}
        </>
      )}
    </Page>
  );
}

function HowToDeploy() {
  return (
    <>
      <p>In the folder of a service:</p>
      <Command text={`npx tessera-platform cloud login --endpoint ${location.origin}`} />
      <Command text="npx tessera-platform deploy service.ts" />
    </>
  );
}

/** A number that is passed over while it is none. */
function Count({ of }: { readonly of: number }) {
  return <span className={of === 0 ? "zero" : undefined}>{count(of)}</span>;
}

/** How many of the ended tasks failed, as a link to those. */
function FailedTasks({ name, of }: { readonly name: string; readonly of: TaskStatsJson }) {
  const organization = useOrganization();
  const { failed = 0 } = of;
  const ended = endedOf(of);
  if (failed === 0) {
    return <span className="zero">{ended === 0 ? "–" : `0 of ${count(ended)}`}</span>;
  }
  return (
    <Link
      className={`failed-count ${toneOfFailed(failed, ended)}`}
      to="/o/$organization/deployments/$deployment/tasks"
      params={{ organization, deployment: name }}
      search={{ status: "failure", since: "1h" }}
    >
      {count(failed)} of {count(ended)}
      <span className="hidden"> tasks of {name} failed</span>
    </Link>
  );
}

interface ErrorRateProps {
  readonly name: string;
  readonly calls?: number;
  readonly failedCalls?: number;
}

/** The share of calls that failed in the last hour, as a link to when they did. */
function ErrorRate({ name, calls = 0, failedCalls = 0 }: ErrorRateProps) {
  const organization = useOrganization();
  if (calls === 0) {
    return <span className="zero">–</span>;
  }
  return failedCalls === 0 ? (
    <span className="zero">0 %</span>
  ) : (
    <Link
      className={`failed-count ${toneOfFailed(failedCalls, calls)}`}
      to="/o/$organization/deployments/$deployment/metrics"
      params={{ organization, deployment: name }}
      search={{ range: "1h" }}
    >
      {percent(failedCalls / calls)}
      <span className="hidden"> of the calls of {name} failed</span>
    </Link>
  );
}

function DeploymentLink({ name }: { readonly name: string }) {
  const organization = useOrganization();
  return (
    <Link to="/o/$organization/deployments/$deployment" params={{ organization, deployment: name }}>
      {name}
    </Link>
  );
}

function Workers({ of: { workers = 0, settings = {} } }: { readonly of: DeploymentJson }) {
  return (
    <>
      <span className="whole">{workers} ready</span>
      <span className="secondary whole">
        min {settings.minWorkers ?? 0}, max {settings.maxWorkers ?? 0}
      </span>
    </>
  );
}
