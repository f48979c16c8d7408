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
        return (
          <>
            <StateTabs search={search} filter={filter} />
            <TaskFilters search={search} endpoints={taskEndpoints(deployment)}>
              <AllActions filter={filter} />
            </TaskFilters>
            <TaskList isFiltered={Object.keys(search).length > 0} filter={filter} />
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
