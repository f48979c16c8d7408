/** The deployments of an organization. */
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { TaskStatsJson } from "../../../../../gen/tessera/v1/organization_task_pb.js";
import { deploymentsOf } from "../../api/deployments.ts";
import { useOrganization } from "../../api/session.ts";
import { statsIn, taskStatsOf } from "../../api/task-stats.ts";
import { Command } from "../../ui/command.tsx";
import { Empty } from "../../ui/empty.tsx";
import { Page } from "../../ui/page.tsx";
import { Time } from "../../ui/time.tsx";
import { DeploymentState } from "./state.tsx";

export function Deployments() {
  const organization = useOrganization();
  const { data: deployments } = useSuspenseQuery(deploymentsOf(organization));
  const { data: stats } = useQuery(taskStatsOf(organization));
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
                <th scope="col">Waiting</th>
                <th scope="col">Running</th>
                <th scope="col">Failed in an hour</th>
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
                  <Numbers stats={stats && statsIn(stats, one.name)} />
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

/** The cells of its tasks; empty until they are known. */
function Numbers({ stats }: { readonly stats: TaskStatsJson | undefined }) {
  return (
    <>
      <td>{stats && (stats.queued ?? 0)}</td>
      <td>{stats && (stats.running ?? 0)}</td>
      <td>{stats && (stats.failed ?? 0)}</td>
    </>
  );
}
