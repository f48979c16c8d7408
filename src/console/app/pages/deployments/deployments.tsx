/** The deployments of an organization. */
import { useSuspenseQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { deploymentsOf } from "../../api/deployments.ts";
import { useOrganization } from "../../api/session.ts";
import { Command } from "../../ui/command.tsx";
import { Empty } from "../../ui/empty.tsx";
import { Page } from "../../ui/page.tsx";
import { Time } from "../../ui/time.tsx";
import { DeploymentState } from "./state.tsx";

export function Deployments() {
  const organization = useOrganization();
  const { data: deployments } = useSuspenseQuery(deploymentsOf(organization));
  return (
    <Page title="Deployments" description="Services that this organization runs here.">
      {deployments.length === 0 ? (
        <Empty inPage title="Nothing is deployed yet">
          <p>In the folder of a service:</p>
          <Command text={`npx tessera-platform cloud login --endpoint ${location.origin}`} />
          <Command text="npx tessera-platform deploy service.ts" />
        </Empty>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
        <section className="table-box" aria-label="Deployments" tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">State</th>
                <th scope="col">Revision</th>
                <th scope="col">Workers</th>
                <th scope="col">Callers</th>
                <th scope="col">Changed</th>
              </tr>
            </thead>
            <tbody>
              {deployments.map((one) => (
                <tr key={one.deploymentId}>
                  <th scope="row">
                    <Link
                      to="/o/$organization/deployments/$deployment"
                      params={{ organization, deployment: one.name ?? "" }}
                    >
                      {one.name}
                    </Link>
                  </th>
                  <td>
                    <DeploymentState deployment={one} />
                  </td>
                  <td>{one.revision || "none"}</td>
                  <td>
                    {one.workers ?? 0} of {one.settings?.minWorkers ?? 0} to{" "}
                    {one.settings?.maxWorkers ?? 0}
                  </td>
                  <td>{one.authorization ? "need a token" : "anybody"}</td>
                  <td>{one.updatedAt !== undefined && <Time at={one.updatedAt} />}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </Page>
  );
}
