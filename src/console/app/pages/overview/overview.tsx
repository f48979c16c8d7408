/** The first page of an organization: what runs, what needs attention, and the first steps. */
import { useSuspenseQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import { deploymentsOf } from "../../api/deployments.ts";
import { titleOf, useOrganization, usePerson } from "../../api/session.ts";
import { Command } from "../../ui/command.tsx";
import { counted } from "../../ui/counted.ts";
import { Loading } from "../../ui/loading.tsx";
import { Page } from "../../ui/page.tsx";
import { DeploymentState } from "../deployments/state.tsx";

/** With what draws charts, which other pages do not need. */
const LastHour = lazy(() => import("./last-hour.tsx"));

export function Overview() {
  const name = useOrganization();
  const { organization } = usePerson();
  const { data: deployments } = useSuspenseQuery(deploymentsOf(name));
  const bad = deployments.filter(
    ({ status }) =>
      status === "DEPLOYMENT_STATUS_FAILED" || status === "DEPLOYMENT_STATUS_DEGRADED",
  );
  return (
    <Page title={titleOf(organization ?? { name })} description="What runs here.">
      <section aria-labelledby="attention">
        <h2 id="attention">Needs attention</h2>
        {bad.length === 0 ? (
          <p className="secondary">Nothing does.</p>
        ) : (
          <ul className="cards">
            {bad.map((one) => (
              <li key={one.deploymentId} className="card">
                <strong>{one.name}</strong> <DeploymentState deployment={one} />
              </li>
            ))}
          </ul>
        )}
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
            </li>
          ))}
        </ul>
      </section>
      {deployments.length > 0 && (
        <section aria-labelledby="hour">
          <h2 id="hour">Last hour</h2>
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
          <a href="/docs">the reference of the API</a>.
        </p>
      </section>
    </Page>
  );
}
