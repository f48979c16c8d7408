/** The deployments of an organization. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { DeploymentJson } from "../../../../../gen/tessera/v1/deployment_pb.js";
import { useOrganization } from "../../api/session.ts";
import { storageUseOf } from "../../api/storage.ts";
import { statsIn, taskStatsOf } from "../../api/task-stats.ts";
import { useDeployments } from "../../api/use-deployments.ts";
import { Button } from "../../ui/button.tsx";
import { Command } from "../../ui/command.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { Empty } from "../../ui/empty.tsx";
import { useFinder } from "../../ui/finder.tsx";
import { Page } from "../../ui/page.tsx";
import { bytes } from "../../ui/quantity.ts";
import { StreamStatus } from "../../ui/stream-status.tsx";
import { Time } from "../../ui/time.tsx";
import { DeploymentState } from "./state.tsx";
import "./deployments.css";

/** Deployments that are shown at first: an organization may have thousands. */
const MAX_SHOWN_DEPLOYMENTS = 100;

export function Deployments() {
  const organization = useOrganization();
  const { deployments, stream } = useDeployments(organization);
  const { data: stats } = useQuery(taskStatsOf(organization));
  const { data: storage } = useQuery(storageUseOf(organization));
  const [isDeploying, setDeploying] = useState(false);
  const { shown, field, rest } = useFinder(deployments, {
    noun: "deployments",
    maxShown: MAX_SHOWN_DEPLOYMENTS,
    nameOf: ({ name }) => name,
  });
  return (
    <Page
      title="Deployments"
      description="Services that this organization runs here."
      actions={
        <>
          <StreamStatus state={stream} />
          {deployments.length > 0 && (
            <Button aria-expanded={isDeploying} onClick={() => setDeploying(!isDeploying)}>
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
              label="Deployments"
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
                { name: "State", cell: (one) => <DeploymentState deployment={one} /> },
                {
                  name: "Workers",
                  cell: (one) => <span className="whole">{workersOf(one)}</span>,
                },
                {
                  name: "Queued",
                  isNumber: true,
                  cell: ({ name }) => stats && (statsIn(stats, name).queued ?? 0),
                },
                {
                  name: "Running",
                  isNumber: true,
                  cell: ({ name }) => stats && (statsIn(stats, name).running ?? 0),
                },
                {
                  name: "Failed (1 h)",
                  isNumber: true,
                  cell: ({ name = "" }) =>
                    stats && <Failed name={name} count={statsIn(stats, name).failed ?? 0} />,
                },
                {
                  name: "Storage",
                  isNumber: true,
                  cell: ({ name }) => {
                    const own = storage?.deployments?.find(({ deployment }) => deployment === name);
                    return own && bytes(Number(own.bytes)).replace(" ", "\u00a0");
                  },
                },
                {
                  name: "Changed",
                  cell: ({ updatedAt }) =>
                    updatedAt !== undefined && <Time at={updatedAt} style="narrow" />,
                },
              ]}
            />
          </div>
          {rest}
        </>
      )}
      {storage !== undefined && (
        <p className="secondary">
          <Link to="/o/$organization/machines" params={{ organization }}>
            Storage
          </Link>
          : {bytes(Number(storage.usedBytes ?? 0))} of {bytes(Number(storage.limitBytes ?? 0))} used
        </p>
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

/** Tasks that failed, which lead to them. */
function Failed({ name, count }: { readonly name: string; readonly count: number }) {
  const organization = useOrganization();
  if (count === 0) {
    return 0;
  }
  return (
    <Link
      className="failed-count"
      to="/o/$organization/deployments/$deployment/tasks"
      params={{ organization, deployment: name }}
      search={{ status: "failure", since: "1h" }}
    >
      {count}
      <span className="hidden"> failed tasks of {name}</span>
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

/** Such as `1 of 1–4`. */
const workersOf = ({ workers = 0, settings }: DeploymentJson): string =>
  `${workers} of ${settings?.minWorkers ?? 0}–${settings?.maxWorkers ?? 0}`;
