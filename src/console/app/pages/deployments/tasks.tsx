/** The tasks of a deployment, newest first. */
import { getRouteApi } from "@tanstack/react-router";
import type { DeploymentJson } from "../../../../../gen/tessera/v1/deployment_pb.js";
import { AllActions } from "../tasks/bulk.tsx";
import { TaskFilters } from "../tasks/filter.tsx";
import { TaskList } from "../tasks/list.tsx";
import { type TaskSearch, useFilter } from "../tasks/search.ts";
import { StateTabs } from "../tasks/tabs.tsx";
import { DeploymentFrame } from "./frame.tsx";
import "../tasks/table.css";

const route = getRouteApi("/signed-in/o/$organization/deployments/$deployment/tasks");

export function DeploymentTasks() {
  const search: TaskSearch = route.useSearch();
  const others = useFilter(search);
  return (
    <DeploymentFrame title="Tasks" hasStream>
      {(deployment) => {
        const filter = { ...others, deployment: deployment.name };
        const endpoints = taskEndpoints(deployment);
        return (
          <>
            <div className="task-bar">
              <StateTabs search={search} filter={filter} />
              <TaskFilters search={search} {...(endpoints.length > 1 && { endpoints })}>
                <AllActions filter={filter} />
              </TaskFilters>
            </div>
            <TaskList
              isFiltered={Object.keys(search).length > 0}
              filter={filter}
              ofOneEndpoint={endpoints.length === 1}
            />
          </>
        );
      }}
    </DeploymentFrame>
  );
}

const taskEndpoints = ({ endpoints = [] }: DeploymentJson): string[] =>
  endpoints
    .filter(({ kind }) => kind === "ENDPOINT_KIND_TASK" || kind === "ENDPOINT_KIND_SERVER")
    .map(({ name = "" }) => name);
